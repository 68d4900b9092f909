/*
 * The topics that a worker reads.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "topics.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "ending.h"
#include "tools/base/say.h"
#include "tools/points/otlp_points.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMITTED_MS   30000 /* a transaction of the worker before may have to time out */
#define TO_COME_MS     5000  /* a message's time may be so much later than ours */
#define LAG_MS         500   /* so much brokers' clocks may differ where the log has ended */
#define ASK_MS         200   /* a partition's end is asked for that often */
#define ASK_LIMIT_MS   1000
#define RELIEVED_SHARE 10 /* what is over max_open_bytes, and a tenth of it, goes */

struct assigned {
    struct partition partition; /* of spans */
    struct place place;         /* of hosts' metrics */
    struct place committed;
    int64_t end_offset; /* the end of the log was there; -1: not since the last message */
    int64_t asked_ms;   /* when the broker was asked for its end last */
    int64_t log_ms;     /* the log's time of the latest message, */
    int64_t read_ms;    /* and when it was read, by the monotonic clock; 0: none was */
};

struct topic_read {
    const char *name; /* NULL: there is no such topic */
    bool is_of_hosts;
    struct assigned **assigned; /* by partition; NULL: another worker's */
    int32_t room;
};

enum { SPANS, HOSTS, TOPICS };

struct topics {
    rd_kafka_t *consumer;
    struct work_stage *stage;
    struct fleet *fleet; /* NULL: there is no topic of hosts' metrics */
    uint64_t max_open_bytes;
    struct topic_read all[TOPICS];
    int32_t pass_next; /* the partition that is asked first whether its time passes */
    bool says_times;   /* it was said that a log has the times of its writers */
};

static struct topic_read *topics_find(struct topics *topics, const char *name)
{
    const bool is_of_hosts = topics->fleet && strcmp(name, topics->all[HOSTS].name) == 0;

    return &topics->all[is_of_hosts ? HOSTS : SPANS];
}

static struct assigned *topics_assigned(const struct topic_read *topic, int32_t partition)
{
    return partition >= 0 && partition < topic->room ? topic->assigned[partition] : NULL;
}

static struct place topics_place(const struct topic_read *topic, const struct assigned *assigned)
{
    return topic->is_of_hosts ? assigned->place : partition_place(&assigned->partition);
}

/* The offset to read next. */
static int64_t topics_next(const struct topic_read *topic, const struct assigned *assigned)
{
    return topic->is_of_hosts ? assigned->place.read_to : partition_next(&assigned->partition);
}

/* ---- partitions come and go ------------------------------------------------------------------ */

static bool topics_make_room(struct topic_read *topic, int32_t partition)
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
static bool topics_find_cut(const struct topics *topics, const struct topic_read *topic,
                            int32_t partition, int64_t time_ms, int64_t high, int64_t *cut)
{
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t code;

    *cut = high;
    if (time_ms == 0)
        return true;
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic->name, partition)->offset = time_ms + 1;
    code = rd_kafka_offsets_for_times(topics->consumer, list, COMMITTED_MS);
    if (!code)
        code = list->elems[0].err;
    if (!code && list->elems[0].offset >= 0 && list->elems[0].offset < high)
        *cut = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        ending_fail("partition %" PRId32 " of %s: %s", partition, topic->name,
                    rd_kafka_err2str(code));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The log ends at high, before the place. */
static bool topics_go_on_at_cut(const struct topics *topics, const struct topic_read *topic,
                                int32_t partition, int64_t low, int64_t high, struct place *place)
{
    int64_t cut;

    if (!topics_find_cut(topics, topic, partition, place->time_ms, high, &cut))
        return false;
    say(BK7001,
        "partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
        " that was read: a broker has lost its end, or the topic was made again. Reading goes on "
        "at "
        "%" PRId64 ": %" PRId64 " offsets are missing",
        partition, topic->name, high, place->read_to, cut, place->read_to - cut);
    topics->stage->counts.offsets_missing += (uint64_t)(place->read_to - cut);
    *place = place_cut(place, low, cut);
    return true;
}

/* Where to begin: what was committed, if the log has it still. *has_moved: it has not. */
static bool topics_find_place(const struct topics *topics, const struct topic_read *topic,
                              const rd_kafka_topic_partition_t *committed, struct place *place,
                              bool *has_moved)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        topics->consumer, topic->name, committed->partition, &low, &high, COMMITTED_MS);

    if (code || committed->err) {
        ending_fail("partition %" PRId32 " of %s: %s", committed->partition, topic->name,
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
        return topics_go_on_at_cut(topics, topic, committed->partition, low, high, place);
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* the broker deletes faster than workers read */
        if (low > place->read_to)
            topics->stage->counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place =
            (struct place){low, low, place->read_to > low ? place->read_to : low, place->time_ms};
        *has_moved = true;
    }
    return true;
}

bool topics_assign(struct topics *topics, rd_kafka_topic_partition_t *committed)
{
    struct topic_read *topic = topics_find(topics, committed->topic);
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;
    bool has_moved;

    if (!assigned || !topics_make_room(topic, committed->partition) ||
        !topics_find_place(topics, topic, committed, &place, &has_moved) ||
        (!topic->is_of_hosts &&
         !partition_open(&assigned->partition, &topics->stage->assembly, place))) {
        ending_fail("out of memory");
        free(assigned);
        return false;
    }
    committed->offset = topic->is_of_hosts ? place.read_to : place.read_back;
    assigned->place = place;
    assigned->committed = has_moved ? (struct place){-1, -1, -1, -1} : place;
    assigned->end_offset = -1;
    topic->assigned[committed->partition] = assigned;
    topics->stage->counts.partitions++;
    return true;
}

static void topics_give_away(struct topics *topics, struct topic_read *topic, int32_t partition)
{
    struct assigned *assigned = topics_assigned(topic, partition);

    if (!assigned)
        return;
    topic->assigned[partition] = NULL;
    topics->stage->counts.partitions--;
    if (!topic->is_of_hosts)
        partition_close(&assigned->partition);
    free(assigned);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void topics_add_place(const struct topic_read *topic, int32_t partition,
                             rd_kafka_topic_partition_list_t *places)
{
    const struct assigned *assigned = topics_assigned(topic, partition);
    rd_kafka_topic_partition_t *one;
    char text[PLACE_TEXT_MAX];
    struct place place;

    if (!assigned)
        return;
    place = topics_place(topic, assigned);
    if (memcmp(&place, &assigned->committed, sizeof(place)) == 0)
        return;
    place_write(&place, text);
    one = rd_kafka_topic_partition_list_add(places, topic->name, partition);
    one->offset = place.watermark;
    one->metadata = strdup(text);
    one->metadata_size = one->metadata ? strlen(text) : 0;
}

void topics_give_back(struct topics *topics, const rd_kafka_topic_partition_t *partition,
                      rd_kafka_topic_partition_list_t *places)
{
    struct topic_read *topic = topics_find(topics, partition->topic);

    topics_add_place(topic, partition->partition, places);
    topics_give_away(topics, topic, partition->partition);
}

void topics_add_places(const struct topics *topics, rd_kafka_topic_partition_list_t *places)
{
    for (const struct topic_read *topic = topics->all; topic < topics->all + TOPICS; topic++) {
        for (int32_t i = 0; i < topic->room; i++)
            topics_add_place(topic, i, places);
    }
}

void topics_committed(struct topics *topics)
{
    for (const struct topic_read *topic = topics->all; topic < topics->all + TOPICS; topic++) {
        for (int32_t i = 0; i < topic->room; i++) {
            if (topic->assigned[i])
                topic->assigned[i]->committed = topics_place(topic, topic->assigned[i]);
        }
    }
    if (topics->fleet)
        fleet_begin_period(topics->fleet);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The log's time, which all workers see alike. Where a writer's clock is ahead it is our time, so
 * that the message closes nothing. */
static int64_t topics_time_of(struct topics *topics, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    const int64_t time_ms = rd_kafka_message_timestamp(message, &type);
    int64_t now_ms;

    if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && time_ms >= 0)
        return time_ms;
    if (!topics->says_times) {
        say(BK7004,
            "topic \"%s\" has the times of its writers, so that spans may be counted as late, or "
            "twice after a kill: set message.timestamp.type=LogAppendTime (kafka-configs.sh "
            "--alter)",
            rd_kafka_topic_name(message->rkt));
        topics->says_times = true;
    }
    now_ms = wall_clock_ns() / 1000000;
    if (time_ms < 0 || time_ms > now_ms + TO_COME_MS) {
        topics->stage->counts.messages_skewed++;
        return now_ms;
    }
    return time_ms;
}

/*
 * The log went on before what was read: that is a broker that has lost the log's end, and then the
 * worker begins again where topics_find_cut() says. Messages may also come late from before a
 * partition was given back and taken again.
 */
static void topics_check_end(const struct topics *topics, const struct topic_read *topic,
                             struct assigned *assigned, int32_t partition)
{
    const int64_t now_ms = clock_ms(), next = topics_next(topic, assigned);
    int64_t low, high;

    if (now_ms < assigned->asked_ms + ASK_MS)
        return;
    assigned->asked_ms = now_ms;
    if (rd_kafka_query_watermark_offsets(topics->consumer, topic->name, partition, &low, &high,
                                         ASK_LIMIT_MS) == 0 &&
        high < next)
        ending_fail("partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
                    " that was read: a broker has lost its end",
                    partition, topic->name, high, next);
}

struct host_reading {
    struct topics *topics;
    int64_t time_ns;
};

static void topics_take_point(void *context, const struct fleet_point *point)
{
    const struct host_reading *reading = context;

    reading->topics->stage->assembly.is_starved |=
        !fleet_add(reading->topics->fleet, point, reading->time_ns);
}

static void topics_read_hosts(struct topics *topics, struct assigned *assigned,
                              const rd_kafka_message_t *message)
{
    struct work_counts *counts = &topics->stage->counts;
    struct host_reading reading = {topics, assigned->log_ms * 1000000};
    const struct fleet_counts before = *fleet_counts(topics->fleet);
    const struct fleet_counts *now = fleet_counts(topics->fleet);
    const int64_t next = message->offset + 1;
    struct otlp_points_read told;

    counts->offsets_missing += (uint64_t)(message->offset - assigned->place.read_to);
    assigned->place = (struct place){next, next, next, assigned->log_ms};
    told = otlp_points_read((struct text){message->payload, message->len}, topics_take_point,
                            &reading);
    counts->host_messages++;
    counts->bytes += message->len;
    counts->host_messages_broken += told.is_broken;
    counts->host_points_refused += told.refused + now->refused - before.refused;
    counts->host_points += told.points - (now->refused - before.refused);
    counts->host_points_shifted += now->shifted - before.shifted;
}

void topics_read(struct topics *topics, const rd_kafka_message_t *message)
{
    struct topic_read *topic = topics_find(topics, rd_kafka_topic_name(message->rkt));
    struct assigned *assigned = topics_assigned(topic, message->partition);

    if (!assigned)
        return; /* it was under way when the partition was given back */
    if (message->offset < topics_next(topic, assigned)) {
        topics_check_end(topics, topic, assigned, message->partition);
        return;
    }
    assigned->end_offset = -1;
    assigned->log_ms = topics_time_of(topics, message);
    assigned->read_ms = clock_ms();
    if (topic->is_of_hosts)
        topics_read_hosts(topics, assigned, message);
    else
        partition_read(&assigned->partition,
                       &(struct log_message){.offset = message->offset,
                                             .time_ms = assigned->log_ms,
                                             .bytes = {message->payload, message->len}});
}

void topics_end(struct topics *topics, const rd_kafka_message_t *message)
{
    struct topic_read *topic = topics_find(topics, rd_kafka_topic_name(message->rkt));
    struct assigned *assigned = topics_assigned(topic, message->partition);

    if (assigned && message->offset < topics_next(topic, assigned))
        topics_check_end(topics, topic, assigned, message->partition);
    else if (assigned)
        assigned->end_offset = message->offset;
}

/* ---- time and room --------------------------------------------------------------------------- */

/*
 * What the broker's clock shows at least: the latest message was written before it was read. Our
 * own clock may be ahead of the broker's, and would close traces whose spans are still to come.
 */
static int64_t topics_log_time(const struct assigned *assigned, int64_t now_ms)
{
    return assigned->read_ms ? assigned->log_ms + (now_ms - assigned->read_ms) - LAG_MS : INT64_MIN;
}

/* Once the broker has said that there is nothing more, what comes is later by its clock, too. */
void topics_pass_time(struct topics *topics)
{
    const struct topic_read *topic = &topics->all[SPANS];
    const int64_t now_ms = clock_ms();

    for (int32_t i = 0; i < topic->room; i++) {
        const int32_t number = (topics->pass_next + i) % topic->room;
        struct assigned *assigned = topic->assigned[number];
        int64_t low, high;

        if (!assigned || assigned->end_offset < 0 || now_ms < assigned->asked_ms + ASK_MS ||
            partition_due_ms(&assigned->partition) > topics_log_time(assigned, now_ms))
            continue;
        assigned->asked_ms = now_ms;
        topics->pass_next = (number + 1) % topic->room;
        if (rd_kafka_query_watermark_offsets(topics->consumer, topic->name, number, &low, &high,
                                             ASK_LIMIT_MS) == 0 &&
            high == assigned->end_offset)
            partition_pass(&assigned->partition, topics_log_time(assigned, now_ms));
        return; /* one at a time: messages may have come */
    }
}

/* The partition whose oldest trace is the oldest; of those without any the one with the most to
 * forget. */
static struct assigned *topics_oldest(const struct topic_read *topic)
{
    struct assigned *found = NULL;

    for (int32_t i = 0; i < topic->room; i++) {
        struct assigned *assigned = topic->assigned[i];

        if (!assigned)
            continue;
        if (!found ||
            partition_due_ms(&assigned->partition) < partition_due_ms(&found->partition) ||
            partition_is_empty(&found->partition))
            found = assigned;
    }
    return found;
}

void topics_relieve(struct topics *topics)
{
    const struct work_counts *counts = &topics->stage->counts;
    const uint64_t max = topics->max_open_bytes;
    struct assigned *assigned;

    if (counts->open_bytes <= max)
        return;
    if (counts->traces_early == 0)
        say(BK7006,
            "traces are closed before their time: max-open-bytes (%" PRIu64 ") is too small, or "
            "there are too few workers",
            max);
    while (counts->open_bytes > max - max / RELIEVED_SHARE &&
           (assigned = topics_oldest(&topics->all[SPANS])) &&
           partition_relieve(&assigned->partition))
        ;
}

double topics_behind_s(const struct topics *topics)
{
    const int64_t now_ms = wall_clock_ns() / 1000000;
    int64_t behind_ms = 0;

    for (const struct topic_read *topic = topics->all; topic < topics->all + TOPICS; topic++) {
        for (int32_t i = 0; i < topic->room; i++) {
            const struct assigned *assigned = topic->assigned[i];

            if (assigned && assigned->end_offset < 0 && assigned->log_ms > 0 &&
                now_ms - assigned->log_ms > behind_ms)
                behind_ms = now_ms - assigned->log_ms;
        }
    }
    return (double)behind_ms / 1e3;
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct topics *topics_new(rd_kafka_t *consumer, const struct work_settings *settings,
                          struct work_stage *stage, struct error *error)
{
    struct topics *topics = calloc(1, sizeof(*topics));
    struct error cause;

    error_set(error, "out of memory");
    if (!topics)
        return NULL;
    *topics = (struct topics){
        .consumer = consumer, .stage = stage, .max_open_bytes = settings->max_open_bytes};
    topics->all[SPANS].name = settings->input.topic;
    if (!settings->host_input || !*settings->host_input)
        return topics;
    topics->all[HOSTS] = (struct topic_read){.name = settings->host_input, .is_of_hosts = true};
    topics->fleet = fleet_new(settings->host_groups, &cause);
    if (topics->fleet)
        return topics;
    error_set(error, "host-groups: %.900s", cause.text);
    free(topics);
    return NULL;
}

void topics_free(struct topics *topics)
{
    if (!topics)
        return;
    for (struct topic_read *topic = topics->all; topic < topics->all + TOPICS; topic++) {
        for (int32_t i = 0; i < topic->room; i++)
            topics_give_away(topics, topic, i);
        free(topic->assigned);
    }
    fleet_free(topics->fleet);
    free(topics);
}

rd_kafka_topic_partition_list_t *topics_list(const struct topics *topics)
{
    const char *spans = topics->all[SPANS].name, *hosts = topics->all[HOSTS].name;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(TOPICS);

    (void)rd_kafka_topic_partition_list_add(list, spans, RD_KAFKA_PARTITION_UA);
    if (hosts && strcmp(hosts, spans) != 0)
        (void)rd_kafka_topic_partition_list_add(list, hosts, RD_KAFKA_PARTITION_UA);
    return list;
}

struct fleet *topics_fleet(const struct topics *topics)
{
    return topics->fleet;
}
