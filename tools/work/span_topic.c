/*
 * The topic of spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span_topic.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "ending.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMITTED_MS   30000 /* a transaction of the worker before may have to time out */
#define LAG_MS         500   /* so much brokers' clocks may differ where the log has ended */
#define ASK_MS         200   /* a partition's end is asked for that often */
#define ASK_LIMIT_MS   1000
#define RELIEVED_SHARE 10 /* what is over max_open_bytes, and a tenth of it, goes */

struct assigned {
    struct partition partition;
    struct place committed;
    int64_t end_offset; /* the end of the log was there; -1: not since the last message */
    int64_t asked_ms;   /* when the broker was asked for its end last */
    int64_t log_ms;     /* the log's time of the latest message, */
    int64_t read_ms;    /* and when it was read, by the monotonic clock; 0: none was */
};

struct span_topic {
    rd_kafka_t *consumer;
    const char *name;
    struct work_stage *stage;
    uint64_t max_open_bytes;
    struct assigned **assigned; /* by partition; NULL: another worker's */
    int32_t room;
    int32_t pass_next; /* the partition that is asked first whether its time passes */
};

struct span_topic *span_topic_new(rd_kafka_t *consumer, const char *name, struct work_stage *stage,
                                  uint64_t max_open_bytes)
{
    struct span_topic *topic = calloc(1, sizeof(*topic));

    if (topic)
        *topic = (struct span_topic){
            .consumer = consumer, .name = name, .stage = stage, .max_open_bytes = max_open_bytes};
    return topic;
}

static struct assigned *span_topic_assigned(const struct span_topic *topic, int32_t partition)
{
    return partition >= 0 && partition < topic->room ? topic->assigned[partition] : NULL;
}

/* ---- partitions come and go ------------------------------------------------------------------ */

static bool span_topic_make_room(struct span_topic *topic, int32_t partition)
{
    const int32_t room = partition + 16;
    struct assigned **assigned;

    if (partition < topic->room)
        return true;
    assigned = realloc(topic->assigned, (size_t)room * sizeof(*assigned));
    if (!assigned)
        return false;
    memset(assigned + topic->room, 0, (size_t)(room - topic->room) * sizeof(*assigned));
    topic->assigned = assigned;
    topic->room = room;
    return true;
}

/*
 * Of a log that ends before what was read: the first message that was written since, by the log's
 * time, else the log's end. What is before it was read: a broker has lost the rest, and writers may
 * have gone on. Of a topic that was made anew it is the beginning.
 */
static bool span_topic_find_cut(struct span_topic *topic, int32_t partition, int64_t time_ms,
                                int64_t high, int64_t *cut)
{
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t code;

    *cut = high;
    if (time_ms == 0)
        return true;
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic->name, partition)->offset = time_ms + 1;
    code = rd_kafka_offsets_for_times(topic->consumer, list, COMMITTED_MS);
    if (!code)
        code = list->elems[0].err;
    if (!code && list->elems[0].offset >= 0 && list->elems[0].offset < high)
        *cut = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        ending_fail("partition %" PRId32 ": %s", partition, rd_kafka_err2str(code));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The log ends at high, before the place. */
static bool span_topic_go_on_at_cut(struct span_topic *topic, int32_t partition, int64_t low,
                                    int64_t high, struct place *place)
{
    int64_t cut;

    if (!span_topic_find_cut(topic, partition, place->time_ms, high, &cut))
        return false;
    say(BT_LOGGING_LEVEL_WARNING,
        "partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
        " that was read: a broker has lost its end, or the topic was made anew. Reading goes on at "
        "%" PRId64 ": %" PRId64 " offsets are missing",
        partition, high, place->read_to, cut, place->read_to - cut);
    topic->stage->counts.offsets_missing += (uint64_t)(place->read_to - cut);
    *place = place_cut(place, low, cut);
    return true;
}

/* Where to begin: what was committed, if the log has it still. *has_moved: it has not. */
static bool span_topic_find_place(struct span_topic *topic,
                                  const rd_kafka_topic_partition_t *committed, struct place *place,
                                  bool *has_moved)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        topic->consumer, topic->name, committed->partition, &low, &high, COMMITTED_MS);

    if (code || committed->err) {
        ending_fail("partition %" PRId32 ": %s", committed->partition,
                    rd_kafka_err2str(code ? code : committed->err));
        return false;
    }
    *place = (struct place){low, low, low, 0};
    *has_moved = committed->offset < 0;
    if (committed->offset < 0)
        return true;
    *place =
        place_read(committed->offset, (struct text){committed->metadata, committed->metadata_size});
    if (place->read_to > high) {
        *has_moved = true;
        return span_topic_go_on_at_cut(topic, committed->partition, low, high, place);
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* the broker deletes faster than workers read */
        if (low > place->read_to)
            topic->stage->counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place =
            (struct place){low, low, place->read_to > low ? place->read_to : low, place->time_ms};
        *has_moved = true;
    }
    return true;
}

bool span_topic_assign(struct span_topic *topic, rd_kafka_topic_partition_t *committed)
{
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;
    bool has_moved;

    if (!assigned || !span_topic_make_room(topic, committed->partition) ||
        !span_topic_find_place(topic, committed, &place, &has_moved) ||
        !partition_open(&assigned->partition, &topic->stage->assembly, place)) {
        ending_fail("out of memory");
        free(assigned);
        return false;
    }
    assigned->committed = has_moved ? (struct place){-1, -1, -1, -1} : place;
    assigned->end_offset = -1;
    topic->assigned[committed->partition] = assigned;
    topic->stage->counts.partitions++;
    committed->offset = place.read_back;
    return true;
}

static void span_topic_give_away(struct span_topic *topic, int32_t partition)
{
    struct assigned *assigned = span_topic_assigned(topic, partition);

    if (!assigned)
        return;
    topic->assigned[partition] = NULL;
    topic->stage->counts.partitions--;
    partition_close(&assigned->partition);
    free(assigned);
}

void span_topic_free(struct span_topic *topic)
{
    if (!topic)
        return;
    for (int32_t i = 0; i < topic->room; i++)
        span_topic_give_away(topic, i);
    free(topic->assigned);
    free(topic);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void span_topic_add_place(const struct span_topic *topic, int32_t partition,
                                 rd_kafka_topic_partition_list_t *places)
{
    const struct assigned *assigned = span_topic_assigned(topic, partition);
    rd_kafka_topic_partition_t *one;
    char text[PLACE_TEXT_MAX];
    struct place place;

    if (!assigned)
        return;
    place = partition_place(&assigned->partition);
    if (memcmp(&place, &assigned->committed, sizeof(place)) == 0)
        return;
    place_write(&place, text);
    one = rd_kafka_topic_partition_list_add(places, topic->name, partition);
    one->offset = place.watermark;
    one->metadata = strdup(text);
    one->metadata_size = one->metadata ? strlen(text) : 0;
}

void span_topic_give_back(struct span_topic *topic, int32_t partition,
                          rd_kafka_topic_partition_list_t *places)
{
    span_topic_add_place(topic, partition, places);
    span_topic_give_away(topic, partition);
}

void span_topic_add_places(const struct span_topic *topic, rd_kafka_topic_partition_list_t *places)
{
    for (int32_t i = 0; i < topic->room; i++)
        span_topic_add_place(topic, i, places);
}

void span_topic_committed(struct span_topic *topic)
{
    for (int32_t i = 0; i < topic->room; i++) {
        if (topic->assigned[i])
            topic->assigned[i]->committed = partition_place(&topic->assigned[i]->partition);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * The log went on before what was read: that is a broker that has lost the log's end, and then the
 * worker begins again where span_topic_find_cut() says. Messages may also come late from before a
 * partition was given away and taken again.
 */
static void span_topic_check_end(struct span_topic *topic, struct assigned *assigned,
                                 int32_t partition)
{
    const int64_t now_ms = clock_ms();
    int64_t low, high;

    if (now_ms < assigned->asked_ms + ASK_MS)
        return;
    assigned->asked_ms = now_ms;
    if (rd_kafka_query_watermark_offsets(topic->consumer, topic->name, partition, &low, &high,
                                         ASK_LIMIT_MS) == 0 &&
        high < assigned->partition.next)
        ending_fail("partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
                    " that was read: a broker has lost its end",
                    partition, high, assigned->partition.next);
}

void span_topic_read(struct span_topic *topic, const rd_kafka_message_t *message, int64_t time_ms)
{
    struct assigned *assigned = span_topic_assigned(topic, message->partition);

    if (!assigned)
        return; /* it was under way when the partition was given back */
    if (message->offset < assigned->partition.next) {
        span_topic_check_end(topic, assigned, message->partition);
        return;
    }
    assigned->end_offset = -1;
    assigned->log_ms = time_ms;
    assigned->read_ms = clock_ms();
    partition_read(&assigned->partition,
                   &(struct log_message){.offset = message->offset,
                                         .time_ms = assigned->log_ms,
                                         .bytes = {message->payload, message->len}});
}

void span_topic_end(struct span_topic *topic, int32_t partition, int64_t offset)
{
    struct assigned *assigned = span_topic_assigned(topic, partition);

    if (assigned && offset < assigned->partition.next)
        span_topic_check_end(topic, assigned, partition);
    else if (assigned)
        assigned->end_offset = offset;
}

/* ---- time and room --------------------------------------------------------------------------- */

/*
 * What the broker's clock shows at least: the latest message was written before it was read. Our
 * own clock may be ahead of the broker's, and would close traces whose spans are still to come.
 */
static int64_t span_topic_log_time(const struct assigned *assigned, int64_t now_ms)
{
    return assigned->read_ms ? assigned->log_ms + (now_ms - assigned->read_ms) - LAG_MS : INT64_MIN;
}

/* Once the broker has said that there is nothing more, what comes is later by its clock, too. */
void span_topic_pass_time(struct span_topic *topic)
{
    const int64_t now_ms = clock_ms();

    for (int32_t i = 0; i < topic->room; i++) {
        const int32_t number = (topic->pass_next + i) % topic->room;
        struct assigned *assigned = topic->assigned[number];
        int64_t low, high;

        if (!assigned || assigned->end_offset < 0 || now_ms < assigned->asked_ms + ASK_MS ||
            partition_due_ms(&assigned->partition) > span_topic_log_time(assigned, now_ms))
            continue;
        assigned->asked_ms = now_ms;
        topic->pass_next = (number + 1) % topic->room;
        if (rd_kafka_query_watermark_offsets(topic->consumer, topic->name, number, &low, &high,
                                             ASK_LIMIT_MS) == 0 &&
            high == assigned->end_offset)
            partition_pass(&assigned->partition, span_topic_log_time(assigned, now_ms));
        return; /* one at a time: messages may have come */
    }
}

/* The partition whose oldest trace is the oldest; of those without any the one with the most to
 * forget. */
static struct assigned *span_topic_oldest(const struct span_topic *topic)
{
    struct assigned *found = NULL;

    for (int32_t i = 0; i < topic->room; i++) {
        struct assigned *assigned = topic->assigned[i];

        if (!assigned)
            continue;
        if (!found ||
            partition_due_ms(&assigned->partition) < partition_due_ms(&found->partition) ||
            (!found->partition.open_traces.first && !found->partition.decided.first))
            found = assigned;
    }
    return found;
}

void span_topic_relieve(struct span_topic *topic)
{
    const struct work_counts *counts = &topic->stage->counts;
    const uint64_t max = topic->max_open_bytes;
    struct assigned *assigned;

    if (counts->open_bytes <= max)
        return;
    if (counts->traces_early == 0)
        say(BT_LOGGING_LEVEL_WARNING,
            "traces are closed before their time: max-open-bytes (%" PRIu64 ") is too small, or "
            "there are too few workers",
            max);
    while (counts->open_bytes > max - max / RELIEVED_SHARE &&
           (assigned = span_topic_oldest(topic)) && partition_relieve(&assigned->partition))
        ;
}

int64_t span_topic_behind_ms(const struct span_topic *topic, int64_t now_ms)
{
    int64_t behind_ms = 0;

    for (int32_t i = 0; i < topic->room; i++) {
        const struct assigned *assigned = topic->assigned[i];

        if (assigned && assigned->end_offset < 0 && assigned->partition.time_ms > 0 &&
            now_ms - assigned->partition.time_ms > behind_ms)
            behind_ms = now_ms - assigned->partition.time_ms;
    }
    return behind_ms;
}
