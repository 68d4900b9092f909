/*
 * Partitions come and go: where a worker begins to read one, and what it does before it gives one
 * away.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#ifdef HAS_KAFKA

#include "tools/base/say.h"

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

/*
 * Of a log that ends before what was read: the first message that was written since, by the log's
 * time, else the log's end. What is before it was read: a broker has lost the rest, and writers may
 * have gone on. Of a topic that was made anew it is the beginning. Returns false after
 * worker_fail().
 */
static bool find_cut(struct worker *worker, int32_t partition, int64_t time_ms, int64_t high,
                     int64_t *cut)
{
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t code;

    *cut = high;
    if (time_ms == 0)
        return true;
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, worker->input.topic, partition)->offset = time_ms + 1;
    code = rd_kafka_offsets_for_times(worker->consumer, list, COMMITTED_MS);
    if (!code)
        code = list->elems[0].err;
    if (!code && list->elems[0].offset >= 0 && list->elems[0].offset < high)
        *cut = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        worker_fail(worker, "partition %" PRId32 ": %s", partition, rd_kafka_err2str(code));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The log ends at high, before the place. */
static bool go_on_at_cut(struct worker *worker, int32_t partition, int64_t low, int64_t high,
                         struct place *place)
{
    int64_t cut;

    if (!find_cut(worker, partition, place->time_ms, high, &cut))
        return false;
    say(BK7001,
        "partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
        " that was read: a broker has lost its end, or the topic was made anew. Reading goes on at "
        "%" PRId64 ": %" PRId64 " offsets are missing",
        partition, high, place->read_to, cut, place->read_to - cut);
    worker->stage.counts.offsets_missing += (uint64_t)(place->read_to - cut);
    *place = place_cut(place, low, cut);
    return true;
}

/* Where to begin: what was committed, if the log has it still. *has_moved: it has not. */
static bool find_place(struct worker *worker, const rd_kafka_topic_partition_t *committed,
                       struct place *place, bool *has_moved)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        worker->consumer, worker->input.topic, committed->partition, &low, &high, COMMITTED_MS);

    if (code || committed->err) {
        worker_fail(worker, "partition %" PRId32 ": %s", committed->partition,
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
        return go_on_at_cut(worker, committed->partition, low, high, place);
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* retention was faster than we */
        if (low > place->read_to)
            worker->stage.counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place =
            (struct place){low, low, place->read_to > low ? place->read_to : low, place->time_ms};
        *has_moved = true;
    }
    return true;
}

static bool assign_one(struct worker *worker, rd_kafka_topic_partition_t *committed)
{
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;
    bool has_moved;

    if (!assigned || !make_assigned_room(worker, committed->partition)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    if (!find_place(worker, committed, &place, &has_moved) ||
        !partition_open(&assigned->partition, &worker->stage.assembly, place)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    assigned->committed = has_moved ? (struct place){-1, -1, -1, -1} : place;
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
    say(BK7003, "%d partitions %s", partitions->cnt,
        what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "are ours" : "go to others");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        assign(worker, partitions);
    else
        give_back(worker, partitions);
}

#else

typedef int this_build_is_without_librdkafka;

#endif
