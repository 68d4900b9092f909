/*
 * Partitions come and go: where a worker begins to read one, and what it does before it gives one
 * away.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#ifdef HAS_KAFKA

#include "service/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMITTED_MS 30000 /* a transaction of the worker before may have to time out */

struct assigned *assigned_of(const struct worker *worker, int32_t partition)
{
    return partition >= 0 && partition < worker->assigned_room ? worker->assigned[partition] : NULL;
}

static bool make_assigned_room(struct worker *worker, int32_t partition)
{
    const int32_t room = partition + 16;
    struct assigned **assigned;

    if (partition < worker->assigned_room)
        return true;
    assigned = realloc(worker->assigned, (size_t)room * sizeof(*assigned));
    if (!assigned)
        return false;
    memset(assigned + worker->assigned_room, 0,
           (size_t)(room - worker->assigned_room) * sizeof(*assigned));
    worker->assigned = assigned;
    worker->assigned_room = room;
    return true;
}

/* Where to begin: what was committed, if the log has it still. */
static bool find_place(struct worker *worker, const rd_kafka_topic_partition_t *committed,
                       struct place *place)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        worker->consumer, worker->input.topic, committed->partition, &low, &high, COMMITTED_MS);

    if (code || committed->err) {
        worker_fail(worker, "partition %" PRId32 ": %s", committed->partition,
                    rd_kafka_err2str(code ? code : committed->err));
        return false;
    }
    *place = (struct place){low, low, low};
    if (committed->offset < 0)
        return true;
    *place =
        place_read(committed->offset, (struct text){committed->metadata, committed->metadata_size});
    if (place->watermark > high) {
        say(BT_LOGGING_LEVEL_WARNING,
            "partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
            " that was committed: was the topic made anew? It is read from its beginning",
            committed->partition, high, place->watermark);
        *place = (struct place){low, low, low};
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* retention was faster than we */
        if (low > place->read_to)
            worker->stage.counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place = (struct place){low, low, place->read_to > low ? place->read_to : low};
    }
    return true;
}

static bool assign_one(struct worker *worker, rd_kafka_topic_partition_t *committed)
{
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;

    if (!assigned || !make_assigned_room(worker, committed->partition)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    if (!find_place(worker, committed, &place) ||
        !partition_open(&assigned->partition, &worker->stage.assembly, place)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    assigned->committed = committed->offset < 0 ? (struct place){-1, -1, -1} : place;
    assigned->end_offset = -1;
    worker->assigned[committed->partition] = assigned;
    worker->stage.counts.partitions++;
    committed->offset = place.read_back;
    return true;
}

static void assign(struct worker *worker, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(partitions);
    const rd_kafka_resp_err_t code = rd_kafka_committed(worker->consumer, committed, COMMITTED_MS);
    rd_kafka_error_t *answer;
    bool is_right = code == RD_KAFKA_RESP_ERR_NO_ERROR;

    if (!is_right)
        worker_fail(worker, "what was committed cannot be read: %s", rd_kafka_err2str(code));
    for (int i = 0; is_right && i < committed->cnt; i++)
        is_right = is_of_hosts(worker, committed->elems[i].topic)
                       ? hosts_assign(worker, &committed->elems[i])
                       : assign_one(worker, &committed->elems[i]);
    for (int i = 0; i < committed->cnt; i++) /* the metadata are not for it */
        partitions->elems[i].offset = committed->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(committed);
    answer = rd_kafka_incremental_assign(worker->consumer, partitions);
    if (answer)
        worker_fail(worker, "partitions: %s", rd_kafka_error_string(answer));
    rd_kafka_error_destroy(answer);
}

void give_away(struct worker *worker, int32_t partition)
{
    struct assigned *assigned = assigned_of(worker, partition);

    if (!assigned)
        return;
    worker->assigned[partition] = NULL;
    worker->stage.counts.partitions--;
    partition_close(&assigned->partition);
    free(assigned);
}

/*
 * What they have given is committed first. Where they are lost already, somebody else counts it
 * again, and it cannot be told apart any more from what is not.
 */
static void give_back(struct worker *worker, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_error_t *answer;

    if (rd_kafka_assignment_lost(worker->consumer))
        worker_fail(worker, "the group has given our partitions to others: they did not hear of "
                            "us for session.timeout.ms");
    for (int i = 0; i < partitions->cnt; i++) {
        const int32_t partition = partitions->elems[i].partition;

        if (is_of_hosts(worker, partitions->elems[i].topic)) {
            hosts_give_back(worker, partition);
            continue;
        }
        if (assigned_of(worker, partition))
            transaction_add_leaving(worker, partition);
        give_away(worker, partition);
    }
    (void)transaction_commit(worker);
    answer = rd_kafka_incremental_unassign(worker->consumer, partitions);
    if (answer)
        worker_fail(worker, "partitions: %s", rd_kafka_error_string(answer));
    rd_kafka_error_destroy(answer);
}

void rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t what,
               rd_kafka_topic_partition_list_t *partitions, void *context)
{
    struct worker *worker = context;

    (void)handle;
    worker->stage.counts.rebalances++;
    say(BT_LOGGING_LEVEL_INFO, "%d partitions %s", partitions->cnt,
        what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "are ours" : "go to others");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        assign(worker, partitions);
    else
        give_back(worker, partitions);
}

#else

typedef int this_build_is_without_librdkafka;

#endif
