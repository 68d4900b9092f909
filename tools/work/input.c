/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The limit of a request for offsets: an open transaction of the previous worker may have to time
 * out. */
#define INPUT_COMMITTED_MS 30000
#define TO_COME_MS         5000 /* the most that a message's time may be ahead of this host's clock */
#define LAG_MS             500  /* the most that brokers' clocks may differ */
#define INPUT_ASK_MS       200  /* between requests for a partition's end */
#define ASK_LIMIT_MS       1000 /* the limit of a request for an end */
#define RELIEVED_SHARE     10   /* input_relieve() goes a tenth below max_open_bytes */

struct assigned {
    struct partition partition; /* the traces */
    struct place committed;
    int64_t end_offset; /* the last known end of the log; -1: a message has come since */
    int64_t asked_ms;   /* the last request for the end */
    int64_t log_ms;     /* the log's time of the latest message */
    int64_t read_ms;    /* the monotonic time of its read; 0: none */
};

struct input {
    rd_kafka_t *consumer;
    struct work_stage *stage;
    uint64_t max_open_bytes;
    const char *name;
    struct assigned **assigned; /* by partition; NULL: assigned to another worker */
    int32_t room;
    int32_t pass_next; /* the first partition for the next input_pass_time() */
    bool says_times;   /* has logged that a topic has the times of its writers */
};

static struct assigned *input_assigned(const struct input *input, int32_t partition)
{
    return partition >= 0 && partition < input->room ? input->assigned[partition] : NULL;
}

/* ---- assigned and revoked partitions --------------------------------------------------------- */

static bool input_make_room(struct input *input, int32_t partition)
{
    const int32_t room = partition + 16;
    struct assigned **assigned;

    if (partition < input->room)
        return true;
    assigned = realloc(input->assigned, (size_t)room * sizeof(*assigned));
    if (!assigned)
        return false;
    memset(assigned + input->room, 0, (size_t)(room - input->room) * sizeof(*assigned));
    input->assigned = assigned;
    input->room = room;
    return true;
}

/* For a log that ends before the worker's place: sets *cut to the first message after time_ms, else
 * to the log's end. A broker has lost the end of the log, and writers may have continued. The
 * worker has read all messages before the cut. In a new topic, the cut is the beginning. */
static bool input_find_cut(const struct input *input, int32_t partition, int64_t time_ms,
                           int64_t high, int64_t *cut)
{
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t code;

    *cut = high;
    if (time_ms == 0)
        return true;
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, input->name, partition)->offset = time_ms + 1;
    code = rd_kafka_offsets_for_times(input->consumer, list, INPUT_COMMITTED_MS);
    if (!code)
        code = list->elems[0].err;
    if (!code && list->elems[0].offset >= 0 && list->elems[0].offset < high)
        *cut = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        ending_fail("partition %" PRId32 " of %s: %s", partition, input->name,
                    rd_kafka_err2str(code));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Moves the place to the cut: the log ends at `high`, before the place. */
static bool input_continue_at_cut(const struct input *input, int32_t partition, int64_t low,
                                  int64_t high, struct place *place)
{
    int64_t cut;

    if (!input_find_cut(input, partition, place->time_ms, high, &cut))
        return false;
    say(BK7001,
        "partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
        ", to which it was read: a broker has lost messages, or the topic was created again. "
        "Reading "
        "continues at %" PRId64 ": %" PRId64 " offsets are missing",
        partition, input->name, high, place->read_to, cut, place->read_to - cut);
    input->stage->counts.offsets_missing += (uint64_t)(place->read_to - cut);
    *place = place_cut(place, low, cut);
    return true;
}

/* Sets *place to the committed place. If the log no longer has it, finds another place, and sets
 * *has_moved. */
static bool input_find_place(const struct input *input, const rd_kafka_topic_partition_t *committed,
                             struct place *place, bool *has_moved)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        input->consumer, input->name, committed->partition, &low, &high, INPUT_COMMITTED_MS);

    if (code || committed->err) {
        ending_fail("partition %" PRId32 " of %s: %s", committed->partition, input->name,
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
        return input_continue_at_cut(input, committed->partition, low, high, place);
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* the broker has deleted unread messages */
        if (low > place->read_to)
            input->stage->counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place =
            (struct place){low, low, place->read_to > low ? place->read_to : low, place->time_ms};
        *has_moved = true;
    }
    return true;
}

bool input_assign(struct input *input, rd_kafka_topic_partition_t *committed)
{
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;
    bool has_moved;

    if (!assigned || !input_make_room(input, committed->partition) ||
        !input_find_place(input, committed, &place, &has_moved) ||
        !partition_open(&assigned->partition, &input->stage->assembly, place)) {
        ending_fail("out of memory");
        free(assigned);
        return false;
    }
    committed->offset = place.read_back;
    assigned->committed = has_moved ? (struct place){-1, -1, -1, -1} : place;
    assigned->end_offset = -1;
    input->assigned[committed->partition] = assigned;
    input->stage->counts.partitions++;
    return true;
}

static void input_give_away(struct input *input, int32_t partition)
{
    struct assigned *assigned = input_assigned(input, partition);

    if (!assigned)
        return;
    input->assigned[partition] = NULL;
    input->stage->counts.partitions--;
    partition_close(&assigned->partition);
    free(assigned);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void input_add_place(const struct input *input, int32_t partition,
                            rd_kafka_topic_partition_list_t *places)
{
    const struct assigned *assigned = input_assigned(input, partition);
    rd_kafka_topic_partition_t *one;
    char text[PLACE_TEXT_MAX];
    struct place place;

    if (!assigned)
        return;
    place = partition_place(&assigned->partition);
    if (memcmp(&place, &assigned->committed, sizeof(place)) == 0)
        return;
    place_write(&place, text);
    one = rd_kafka_topic_partition_list_add(places, input->name, partition);
    one->offset = place.watermark;
    one->metadata = strdup(text);
    one->metadata_size = one->metadata ? strlen(text) : 0;
}

void input_give_back(struct input *input, const rd_kafka_topic_partition_t *partition,
                     rd_kafka_topic_partition_list_t *places)
{
    input_add_place(input, partition->partition, places);
    input_give_away(input, partition->partition);
}

void input_add_places(const struct input *input, rd_kafka_topic_partition_list_t *places)
{
    for (int32_t i = 0; i < input->room; i++)
        input_add_place(input, i, places);
}

void input_committed(struct input *input)
{
    for (int32_t i = 0; i < input->room; i++) {
        if (input->assigned[i])
            input->assigned[i]->committed = partition_place(&input->assigned[i]->partition);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the log's time of the message, which is the same for all workers. If a writer's clock is
 * ahead, returns this host's time, so that the message closes no traces. */
static int64_t input_time_of(struct input *input, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    const int64_t time_ms = rd_kafka_message_timestamp(message, &type);
    int64_t now_ms;

    if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && time_ms >= 0)
        return time_ms;
    if (!input->says_times) {
        say(BK7004,
            "topic \"%s\" has the times of its writers, so that spans may be counted as late, or "
            "twice after a kill: set message.timestamp.type=LogAppendTime (kafka-configs.sh "
            "--alter)",
            rd_kafka_topic_name(message->rkt));
        input->says_times = true;
    }
    now_ms = wall_clock_ns() / 1000000;
    if (time_ms < 0 || time_ms > now_ms + TO_COME_MS) {
        input->stage->counts.messages_skewed++;
        return now_ms;
    }
    return time_ms;
}

/* Checks whether the log now ends before the worker's place. If so, a broker has lost the log's
 * end. The worker then ends, and the next worker continues at input_find_cut(). Late messages from
 * before a revocation look the same, so only the brokers can tell. */
static void input_check_end(const struct input *input, struct assigned *assigned, int32_t partition)
{
    const int64_t now_ms = clock_ms(), next = partition_next(&assigned->partition);
    int64_t low, high;

    if (now_ms < assigned->asked_ms + INPUT_ASK_MS)
        return;
    assigned->asked_ms = now_ms;
    if (rd_kafka_query_watermark_offsets(input->consumer, input->name, partition, &low, &high,
                                         ASK_LIMIT_MS) == 0 &&
        high < next)
        ending_fail("partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
                    ", to which it was read: a broker has lost messages",
                    partition, input->name, high, next);
}

void input_read(struct input *input, const rd_kafka_message_t *message)
{
    struct assigned *assigned = input_assigned(input, message->partition);

    if (!assigned)
        return; /* the partition was revoked meanwhile */
    if (message->offset < partition_next(&assigned->partition)) {
        input_check_end(input, assigned, message->partition);
        return;
    }
    assigned->end_offset = -1;
    assigned->log_ms = input_time_of(input, message);
    assigned->read_ms = clock_ms();
    partition_read(&assigned->partition,
                   &(struct log_message){.offset = message->offset,
                                         .time_ms = assigned->log_ms,
                                         .bytes = {message->payload, message->len}});
}

void input_end(struct input *input, const rd_kafka_message_t *message)
{
    struct assigned *assigned = input_assigned(input, message->partition);

    if (assigned && message->offset < partition_next(&assigned->partition))
        input_check_end(input, assigned, message->partition);
    else if (assigned)
        assigned->end_offset = message->offset;
}

/* ---- time and room --------------------------------------------------------------------------- */

/* Returns a lower bound of the broker's clock: the time of the latest message plus the time since
 * its read. This host's clock may be ahead of the broker's and would close traces too early. */
static int64_t input_log_time(const struct assigned *assigned, int64_t now_ms)
{
    return assigned->read_ms ? assigned->log_ms + (now_ms - assigned->read_ms) - LAG_MS : INT64_MIN;
}

/* After the log's end, every further message has a later time by the broker's clock. */
void input_pass_time(struct input *input)
{
    const int64_t now_ms = clock_ms();

    for (int32_t i = 0; i < input->room; i++) {
        const int32_t number = (input->pass_next + i) % input->room;
        struct assigned *assigned = input->assigned[number];
        int64_t low, high;

        if (!assigned || assigned->end_offset < 0 || now_ms < assigned->asked_ms + INPUT_ASK_MS ||
            partition_due_ms(&assigned->partition) > input_log_time(assigned, now_ms))
            continue;
        assigned->asked_ms = now_ms;
        input->pass_next = (number + 1) % input->room;
        if (rd_kafka_query_watermark_offsets(input->consumer, input->name, number, &low, &high,
                                             ASK_LIMIT_MS) == 0 &&
            high == assigned->end_offset)
            partition_pass(&assigned->partition, input_log_time(assigned, now_ms));
        return; /* one partition in each call, as new messages may wait */
    }
}

/* Returns the partition with the oldest open trace. If no trace is open, returns a partition that
 * remembers closed traces. NULL: no partition. */
static struct assigned *input_oldest(const struct input *input)
{
    struct assigned *found = NULL;

    for (int32_t i = 0; i < input->room; i++) {
        struct assigned *assigned = input->assigned[i];

        if (!assigned)
            continue;
        if (!found ||
            partition_due_ms(&assigned->partition) < partition_due_ms(&found->partition) ||
            partition_is_empty(&found->partition))
            found = assigned;
    }
    return found;
}

void input_relieve(struct input *input)
{
    const struct work_counts *counts = &input->stage->counts;
    const uint64_t max = input->max_open_bytes;
    struct assigned *assigned;

    if (counts->open_bytes <= max)
        return;
    if (counts->traces_early == 0)
        say(BK7006,
            "traces are closed before their time: max-open-bytes (%" PRIu64 ") is too small, or "
            "there are too few workers",
            max);
    while (counts->open_bytes > max - max / RELIEVED_SHARE && (assigned = input_oldest(input)) &&
           partition_relieve(&assigned->partition))
        ;
}

double input_behind_s(const struct input *input)
{
    const int64_t now_ms = wall_clock_ns() / 1000000;
    int64_t behind_ms = 0;

    for (int32_t i = 0; i < input->room; i++) {
        const struct assigned *assigned = input->assigned[i];

        if (assigned && assigned->end_offset < 0 && assigned->log_ms > 0 &&
            now_ms - assigned->log_ms > behind_ms)
            behind_ms = now_ms - assigned->log_ms;
    }
    return (double)behind_ms / 1e3;
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct input *input_new(rd_kafka_t *consumer, const struct work_settings *settings,
                        struct work_stage *stage)
{
    struct input *input = calloc(1, sizeof(*input));

    if (input)
        *input = (struct input){.consumer = consumer,
                                .stage = stage,
                                .max_open_bytes = settings->max_open_bytes,
                                .name = settings->input.topic};
    return input;
}

void input_free(struct input *input)
{
    if (!input)
        return;
    for (int32_t i = 0; i < input->room; i++)
        input_give_away(input, i);
    free(input->assigned);
    free(input);
}
