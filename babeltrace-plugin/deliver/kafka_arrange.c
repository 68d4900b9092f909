/*
 * Sorts the spans of a run by partition.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kafka_conf.h"

#ifdef HAS_KAFKA

#include "babeltrace-plugin/base/array.h"

#define KAFKA_MESSAGE_SPANS 2000

/* The partitions of `count` spans, and then the order of the spans. */
struct trace_partitions {
    uint32_t *partition;
    uint32_t *group; /* the unit with the head of the span's group */
    uint32_t *order;
    uint32_t *next; /* for each partition: the position of its next span */
};

static bool partitions_prepare(struct trace_partitions *sorted, struct arranged *arranged,
                               uint32_t count, uint32_t partitions)
{
    const size_t needed = 3 * (size_t)count + partitions;

    if (!ARRAY_FITS(arranged->slots, arranged->slots_room, needed - 1))
        return false;
    sorted->partition = arranged->slots;
    sorted->group = sorted->partition + count;
    sorted->order = sorted->group + count;
    sorted->next = sorted->order + count;
    memset(sorted->next, 0, partitions * sizeof(*sorted->next));
    return true;
}

static size_t arrange_head_length(const struct encoder *encoder, const struct body *body,
                                  uint32_t unit)
{
    return encoder->head_length ? encoder->head_length(body->buffer.data + body->starts[unit]) : 0;
}

/* Finds partitions and groups, and sorts by partition with a stable sort. */
static void arrange_sort(struct trace_partitions *sorted, const struct encoder *encoder,
                         struct body_run run, uint32_t partitions)
{
    uint64_t id[2], last[2] = {0, 0}; /* spans of one trace often come together */
    uint32_t partition = partitions ? kafka_partition(0, 0, partitions) : 0;
    uint32_t group = run.first, position = 0;

    while (encoder->head_length && !arrange_head_length(encoder, run.body, group))
        group--;
    for (uint32_t i = run.first; i < run.end; i++) {
        encoder->trace_of(body_unit(run.body, encoder, i), id);
        if (partitions && (id[0] != last[0] || id[1] != last[1])) {
            memcpy(last, id, sizeof(last));
            partition = kafka_partition(id[0], id[1], partitions);
        }
        if (arrange_head_length(encoder, run.body, i))
            group = i;
        sorted->partition[i - run.first] = partition;
        sorted->group[i - run.first] = group;
        sorted->next[partition]++;
    }
    for (uint32_t i = 0; i < (partitions ? partitions : 1); i++) {
        const uint32_t spans = sorted->next[i];

        sorted->next[i] = position;
        position += spans;
    }
    for (uint32_t i = run.first; i < run.end; i++)
        sorted->order[sorted->next[sorted->partition[i - run.first]]++] = i;
}

static bool arrange_begin_run(struct arranged *arranged, uint32_t partition, uint32_t partitions)
{
    if (!ARRAY_FITS(arranged->runs, arranged->runs_room, arranged->count))
        return false;
    arranged->runs[arranged->count++] = (struct body_run){.body = &arranged->body,
                                                          .first = arranged->body.count,
                                                          .is_arranged = true,
                                                          .partition = partition,
                                                          .partitions = partitions};
    return true;
}

/* Returns true if the last run has room for a span with `length` bytes. */
static bool arrange_has_room(const struct arranged *arranged, uint32_t partition, size_t length,
                             size_t bytes)
{
    const struct body *body = &arranged->body;
    const struct body_run *last = arranged->count ? &arranged->runs[arranged->count - 1] : NULL;

    return last && last->partition == partition &&
           (!last->partitions ||
            (body->count - last->first < KAFKA_MESSAGE_SPANS &&
             body->buffer.length + length - body->starts[last->first] <= bytes));
}

bool kafka_arrange_run(uint32_t partitions, const struct encoder *encoder, struct body_run run,
                       size_t bytes, struct arranged *arranged)
{
    struct body *const body = &arranged->body;
    struct trace_partitions sorted;
    uint32_t group = run.end; /* of the span before in the same run */

    body_reset(body);
    arranged->count = 0;
    if (!partitions_prepare(&sorted, arranged, body_run_length(run), partitions + 1))
        return false;
    arrange_sort(&sorted, encoder, run, partitions);
    for (uint32_t i = 0; i < body_run_length(run); i++) {
        const uint32_t from = sorted.order[i];
        const uint32_t partition = sorted.partition[from - run.first];
        const uint32_t its_group = sorted.group[from - run.first];
        const struct text unit = body_unit(run.body, encoder, from);
        struct text head = {run.body->buffer.data + run.body->starts[its_group], 0};

        if (its_group != from)
            head.length = arrange_head_length(encoder, run.body, its_group);
        if (!arrange_has_room(arranged, partition, head.length + unit.length, bytes)) {
            if (!arrange_begin_run(arranged, partition, partitions))
                return false;
            group = run.end;
        }
        if (its_group == group)
            head.length = 0;
        if (!body_append(body, encoder, head, unit))
            return false;
        group = its_group;
        arranged->runs[arranged->count - 1].end = body->count;
    }
    return true;
}

#else

typedef int this_build_is_without_librdkafka;

#endif
