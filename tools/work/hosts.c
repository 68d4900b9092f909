/*
 * The topic of hosts' metrics: each message stands by itself, so it is added up as it is read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#ifdef HAS_KAFKA

#include "tools/base/say.h"
#include "tools/points/otlp_points.h"

#include <inttypes.h>
#include <stdlib.h>

#define COMMITTED_MS 30000

static struct host_partition *partition_of(const struct worker *worker, int32_t number)
{
    return number >= 0 && number < worker->host_partitions_room &&
                   worker->host_partitions[number].is_ours
               ? &worker->host_partitions[number]
               : NULL;
}

/* ---- partitions come and go ------------------------------------------------------------------ */

static bool make_room(struct worker *worker, int32_t number)
{
    const int32_t room = number + 16;
    struct host_partition *partitions;

    if (number < worker->host_partitions_room)
        return true;
    partitions = realloc(worker->host_partitions, (size_t)room * sizeof(*partitions));
    if (!partitions)
        return false;
    memset(partitions + worker->host_partitions_room, 0,
           (size_t)(room - worker->host_partitions_room) * sizeof(*partitions));
    worker->host_partitions = partitions;
    worker->host_partitions_room = room;
    return true;
}

bool hosts_assign(struct worker *worker, rd_kafka_topic_partition_t *partition)
{
    const int64_t committed = partition->offset;
    int64_t low = 0, high = 0, next = committed;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        worker->consumer, worker->hosts_topic, partition->partition, &low, &high, COMMITTED_MS);

    if (code || partition->err) {
        worker_fail(worker, "partition %" PRId32 " of %s: %s", partition->partition,
                    worker->hosts_topic, rd_kafka_err2str(code ? code : partition->err));
        return false;
    }
    if (!make_room(worker, partition->partition)) {
        worker_fail(worker, "out of memory");
        return false;
    }
    if (committed > high) {
        say(BK7002,
            "partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
            " that was read: a broker has lost its end, or the topic was made anew. Reading goes "
            "on "
            "at its end: %" PRId64 " offsets are missing",
            partition->partition, worker->hosts_topic, high, committed, committed - high);
        worker->stage.counts.offsets_missing += (uint64_t)(committed - high);
        next = high;
    }
    if (committed >= 0 && committed < low) /* retention was faster than we */
        worker->stage.counts.offsets_missing += (uint64_t)(low - committed);
    if (committed < low)
        next = low;
    worker->host_partitions[partition->partition] = (struct host_partition){
        .is_ours = true, .next = next, .committed = committed == next ? next : -1};
    worker->stage.counts.partitions++;
    partition->offset = next;
    return true;
}

static void add_place(const struct worker *worker, int32_t number,
                      rd_kafka_topic_partition_list_t *list)
{
    const struct host_partition *partition = &worker->host_partitions[number];

    if (partition->next != partition->committed)
        rd_kafka_topic_partition_list_add(list, worker->hosts_topic, number)->offset =
            partition->next;
}

void hosts_give_back(struct worker *worker, int32_t number)
{
    struct host_partition *partition = partition_of(worker, number);

    if (!partition)
        return;
    add_place(worker, number, worker->leaving);
    partition->is_ours = false;
    worker->stage.counts.partitions--;
}

/* ---- committing ------------------------------------------------------------------------------ */

void hosts_add_places(const struct worker *worker, rd_kafka_topic_partition_list_t *list)
{
    for (int32_t i = 0; i < worker->host_partitions_room; i++) {
        if (worker->host_partitions[i].is_ours)
            add_place(worker, i, list);
    }
}

void hosts_committed(struct worker *worker)
{
    for (int32_t i = 0; i < worker->host_partitions_room; i++)
        worker->host_partitions[i].committed = worker->host_partitions[i].next;
    if (worker->fleet)
        fleet_begin_period(worker->fleet);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct worker *worker;
    int64_t time_ns;
};

static void take_point(void *context, const struct fleet_point *point)
{
    const struct reading *reading = context;

    reading->worker->stage.assembly.is_starved |=
        !fleet_add(reading->worker->fleet, point, reading->time_ns);
}

void hosts_read(struct worker *worker, const rd_kafka_message_t *message, int64_t time_ms)
{
    struct host_partition *partition = partition_of(worker, message->partition);
    struct work_counts *counts = &worker->stage.counts;
    struct reading reading = {worker, time_ms * 1000000};
    const struct fleet_counts before = *fleet_counts(worker->fleet);
    struct otlp_points_read told;

    if (!partition || message->offset < partition->next)
        return; /* was under way when the partition went */
    counts->offsets_missing += (uint64_t)(message->offset - partition->next);
    partition->next = message->offset + 1;
    partition->is_at_end = false;
    partition->time_ms = time_ms;
    told = otlp_points_read((struct text){message->payload, message->len}, take_point, &reading);
    counts->host_messages++;
    counts->bytes += message->len;
    counts->host_messages_broken += told.is_broken;
    counts->host_points_refused +=
        told.refused + fleet_counts(worker->fleet)->refused - before.refused;
    counts->host_points += told.points - (fleet_counts(worker->fleet)->refused - before.refused);
    counts->host_points_shifted += fleet_counts(worker->fleet)->shifted - before.shifted;
}

void hosts_end(struct worker *worker, int32_t number)
{
    struct host_partition *partition = partition_of(worker, number);

    if (partition)
        partition->is_at_end = true;
}

/* Of the one that is the furthest behind. */
int64_t hosts_behind_ms(const struct worker *worker, int64_t now_ms)
{
    int64_t behind_ms = 0;

    for (int32_t i = 0; i < worker->host_partitions_room; i++) {
        const struct host_partition *partition = &worker->host_partitions[i];

        if (partition->is_ours && !partition->is_at_end && partition->time_ms > 0 &&
            now_ms - partition->time_ms > behind_ms)
            behind_ms = now_ms - partition->time_ms;
    }
    return behind_ms;
}

#else

typedef int this_build_is_without_librdkafka;

#endif
