/*
 * Parts of a body.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "kafka_partition.h"

#define FIRST_PARTS 64

void parts_free(struct parts *parts)
{
    free(parts->list);
    *parts = (struct parts){.count = 0};
}

void parts_reset(struct parts *parts, uint32_t partitions, const struct part_limits *limits)
{
    parts->partitions = partitions;
    parts->limits = *limits;
    parts->count = 0;
    parts->last_trace[0] = parts->last_trace[1] = 0;
    parts->last_partition = partitions ? kafka_partition(0, 0, partitions) : 0;
}

static uint32_t partition_of(struct parts *parts, uint64_t high, uint64_t low)
{
    if (parts->partitions > 1 && (low != parts->last_trace[1] || high != parts->last_trace[0])) {
        parts->last_trace[0] = high;
        parts->last_trace[1] = low;
        parts->last_partition = kafka_partition(high, low, parts->partitions);
    }
    return parts->last_partition;
}

uint32_t parts_key(void *parts, const struct span *span)
{
    return partition_of(parts, span->trace_id_high, span->trace_id);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The next span is the first of a part. Returns false when out of memory. */
static bool begin_part(struct parts *parts, struct body *body, uint32_t partition)
{
    const uint32_t capacity = parts->capacity ? parts->capacity * 2 : FIRST_PARTS;

    if (!parts->list || parts->count == parts->capacity) {
        struct part *list = realloc(parts->list, capacity * sizeof(*list));

        if (!list)
            return false;
        parts->list = list;
        parts->capacity = capacity;
    }
    parts->list[parts->count++] = (struct part){body->count, body->count, partition};
    body_divide(body);
    return true;
}

/* The part that a span of this partition goes into. NULL: out of memory. */
static struct part *part_for(struct parts *parts, struct body *body, uint32_t partition)
{
    const struct part *last = parts->count ? &parts->list[parts->count - 1] : NULL;

    if ((!last || last->partition != partition ||
         (parts->partitions && last->end - last->first >= parts->limits.spans)) &&
        !begin_part(parts, body, partition))
        return NULL;
    return &parts->list[parts->count - 1];
}

static bool is_too_long(const struct parts *parts, const struct part *part, const struct body *body)
{
    return parts->partitions && part->end > part->first &&
           body->buffer.length - body->starts[part->first] > parts->limits.bytes;
}

void parts_trim(struct parts *parts, const struct body *body)
{
    while (parts->count && parts->list[parts->count - 1].first >= body->count)
        parts->count--;
    if (parts->count && parts->list[parts->count - 1].end > body->count)
        parts->list[parts->count - 1].end = body->count;
}

bool parts_add(struct parts *parts, struct body *body, struct encoder *encoder,
               const struct span *span, uint32_t partition, bool *cut)
{
    struct part *part = part_for(parts, body, partition);

    if (!part || !body_add(body, encoder, span, cut)) {
        parts_trim(parts, body);
        return false;
    }
    if (is_too_long(parts, part, body)) {
        body_remove_last(body, encoder);
        if (!begin_part(parts, body, part->partition) || !body_add(body, encoder, span, cut)) {
            parts_trim(parts, body);
            return false;
        }
        part = &parts->list[parts->count - 1];
    }
    part->end = body->count;
    return true;
}

/* ---- spans that are encoded -------------------------------------------------------------------
 */

/* Sorts by counting. Returns the indexes of the spans, or NULL. */
static uint32_t *order(struct parts *parts, const struct body *body, const struct encoder *encoder,
                       uint32_t first, uint32_t spans, uint32_t *of_span)
{
    uint32_t *places = calloc(parts->partitions + (size_t)1, sizeof(*places));
    uint32_t *sorted = calloc(spans, sizeof(*sorted));
    uint32_t place = 0;
    uint64_t id[2];

    for (uint32_t i = 0; places && sorted && i < spans; i++) {
        encoder->trace_of(body_unit(body, encoder, first + i), id);
        of_span[i] = partition_of(parts, id[0], id[1]);
        places[of_span[i]]++;
    }
    for (uint32_t p = 0; places && sorted && p <= parts->partitions; p++) {
        const uint32_t here = places[p];

        places[p] = place;
        place += here;
    }
    for (uint32_t i = 0; places && sorted && i < spans; i++)
        sorted[places[of_span[i]]++] = i;
    if (!places) {
        free(sorted);
        sorted = NULL;
    }
    free(places);
    return sorted;
}

static bool copy(struct parts *parts, struct body *to, const struct body *from,
                 const struct encoder *encoder, uint32_t i, uint32_t partition)
{
    struct part *part = part_for(parts, to, partition);

    if (!part || !body_copy(to, from, encoder, i)) {
        parts_trim(parts, to);
        return false;
    }
    if (is_too_long(parts, part, to)) {
        body_remove_last(to, encoder);
        if (!begin_part(parts, to, partition) || !body_copy(to, from, encoder, i))
            return false;
        part = &parts->list[parts->count - 1];
    }
    part->end = to->count;
    return true;
}

bool parts_arrange(struct parts *parts, const struct body *body, const struct encoder *encoder,
                   uint32_t first, uint32_t end, struct body *arranged)
{
    const uint32_t spans = end - first;
    uint32_t *of_span = malloc(spans * sizeof(*of_span));
    uint32_t *sorted = of_span ? order(parts, body, encoder, first, spans, of_span) : NULL;
    bool is_done = sorted != NULL;

    for (uint32_t i = 0; is_done && i < spans; i++)
        is_done = copy(parts, arranged, body, encoder, first + sorted[i], of_span[sorted[i]]);
    free(sorted);
    free(of_span);
    return is_done;
}
