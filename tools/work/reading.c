/*
 * Reading: messages go to their partitions, and time passes where the log has ended.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#ifdef HAS_KAFKA

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS        50  /* one wait for a message */
#define BATCH          256 /* messages between looks at all else */
#define LAG_MS         500 /* so much brokers' clocks may differ where the log has ended */
#define ASK_MS         200 /* a partition's end is asked for that often */
#define ASK_LIMIT_MS   1000
#define TO_COME_MS     5000 /* a message's time may be so much later than ours */
#define RELIEVED_SHARE 10   /* what is over max-open-bytes, and a tenth of it, goes */

/* The log's, which no worker sees otherwise. Of a writer's clock that is ahead: ours, so that it
 * closes nothing. */
static int64_t time_of(struct worker *worker, const rd_kafka_message_t *message)
{
    static bool is_said;
    rd_kafka_timestamp_type_t type;
    const int64_t time_ms = rd_kafka_message_timestamp(message, &type);
    int64_t now_ms;

    if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && time_ms >= 0)
        return time_ms;
    if (!is_said) {
        say(BK7004,
            "topic \"%s\" has the times of its writers: set message.timestamp.type=LogAppendTime "
            "(kafka-configs.sh --alter), or spans may be counted as late, or twice after a kill",
            rd_kafka_topic_name(message->rkt));
        is_said = true;
    }
    now_ms = wall_clock_ns() / 1000000;
    if (time_ms < 0 || time_ms > now_ms + TO_COME_MS) {
        worker->stage.counts.messages_skewed++;
        return now_ms;
    }
    return time_ms;
}

/*
 * The log went on before what was read: that is a broker that has lost the log's end, and then the
 * worker begins again where assign.c says. Messages may also come late from before a partition was
 * given away and taken again.
 */
static void check_end(struct worker *worker, struct assigned *assigned, int32_t partition)
{
    const int64_t now_ms = clock_ms();
    int64_t low, high;

    if (now_ms < assigned->asked_ms + ASK_MS)
        return;
    assigned->asked_ms = now_ms;
    if (rd_kafka_query_watermark_offsets(worker->consumer, worker->input.topic, partition, &low,
                                         &high, ASK_LIMIT_MS) == 0 &&
        high < assigned->partition.next)
        worker_fail(worker,
                    "partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
                    " that was read: a broker has lost its end",
                    partition, high, assigned->partition.next);
}

static void read_message(struct worker *worker, const rd_kafka_message_t *message)
{
    struct assigned *assigned = assigned_of(worker, message->partition);

    if (is_of_hosts(worker, rd_kafka_topic_name(message->rkt))) {
        hosts_read(worker, message, time_of(worker, message));
        return;
    }
    if (!assigned)
        return; /* was under way when the partition went */
    if (message->offset < assigned->partition.next) {
        check_end(worker, assigned, message->partition);
        return;
    }
    assigned->end_offset = -1;
    assigned->log_ms = time_of(worker, message);
    assigned->read_ms = clock_ms();
    partition_read(&assigned->partition,
                   &(struct log_message){.offset = message->offset,
                                         .time_ms = assigned->log_ms,
                                         .bytes = {message->payload, message->len}});
}

static void take_event(struct worker *worker, const rd_kafka_message_t *message)
{
    struct assigned *assigned = assigned_of(worker, message->partition);
    struct error error;

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (message->rkt && is_of_hosts(worker, rd_kafka_topic_name(message->rkt)))
            hosts_end(worker, message->partition);
        else if (assigned && message->offset < assigned->partition.next)
            check_end(worker, assigned, message->partition);
        else if (assigned)
            assigned->end_offset = message->offset;
    } else {
        kafka_describe(&error,
                       message->rkt ? rd_kafka_topic_name(message->rkt) : worker->input.topic,
                       message->err, rd_kafka_message_errstr(message), "kafka-file");
        say(BK7005, "%s", error.text);
    }
}

/* The one whose oldest trace is the oldest; of those without any the one with the most to forget.
 */
static struct assigned *oldest(const struct worker *worker)
{
    struct assigned *found = NULL;

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        struct assigned *assigned = worker->assigned[i];

        if (!assigned)
            continue;
        if (!found ||
            partition_due_ms(&assigned->partition) < partition_due_ms(&found->partition) ||
            (!found->partition.open_traces.first && !found->partition.decided.first))
            found = assigned;
    }
    return found;
}

void relieve(struct worker *worker)
{
    const uint64_t max = (uint64_t)worker->params.max_open_bytes;
    struct assigned *assigned;

    if (worker->stage.counts.open_bytes <= max)
        return;
    if (worker->stage.counts.traces_early == 0)
        say(BK7006,
            "traces are closed before their time: max-open-bytes (%" PRIu64 ") is too small, or "
            "there are too few workers",
            max);
    while (worker->stage.counts.open_bytes > max - max / RELIEVED_SHARE &&
           (assigned = oldest(worker)) && partition_relieve(&assigned->partition))
        ;
}

/*
 * What the broker's clock shows at least: the latest message was written before it was read. Our
 * own clock may be ahead of the broker's, and would close traces whose spans are still to come.
 */
static int64_t log_time(const struct assigned *assigned, int64_t now_ms)
{
    return assigned->read_ms ? assigned->log_ms + (now_ms - assigned->read_ms) - LAG_MS : INT64_MIN;
}

/* Once the broker has said that there is nothing more, what comes is later by its clock, too. */
void pass_time(struct worker *worker)
{
    static int32_t next;
    const int64_t now_ms = clock_ms();

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        struct assigned *assigned = worker->assigned[(next + i) % worker->assigned_room];
        int64_t low, high;

        if (!assigned || assigned->end_offset < 0 || now_ms < assigned->asked_ms + ASK_MS ||
            partition_due_ms(&assigned->partition) > log_time(assigned, now_ms))
            continue;
        assigned->asked_ms = now_ms;
        next = (next + i + 1) % worker->assigned_room;
        if (rd_kafka_query_watermark_offsets(worker->consumer, worker->input.topic,
                                             (next + worker->assigned_room - 1) %
                                                 worker->assigned_room,
                                             &low, &high, ASK_LIMIT_MS) == 0 &&
            high == assigned->end_offset)
            partition_pass(&assigned->partition, log_time(assigned, now_ms));
        return; /* one at a time: messages may have come */
    }
}

/* Reads what is there. Returns false if there was nothing. */
bool read_some(struct worker *worker)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(worker->consumer, 0);
    int count = 0;

    if (!message) {
        const int64_t from_ns = clock_ns();

        message = rd_kafka_consumer_poll(worker->consumer, POLL_MS);
        worker->idle_ns += clock_ns() - from_ns;
    }
    if (!message)
        return false;
    while (message) {
        if (message->err)
            take_event(worker, message);
        else
            read_message(worker, message);
        rd_kafka_message_destroy(message);
        message = ++count < BATCH && !worker->has_failed
                      ? rd_kafka_consumer_poll(worker->consumer, 0)
                      : NULL;
    }
    return true;
}

#else

typedef int this_build_is_without_librdkafka;

#endif
