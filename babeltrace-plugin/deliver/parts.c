/*
 * Parts of a body.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "babeltrace-plugin/base/array.h"
#include "kafka_partition.h"

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

static uint32_t parts_partition(struct parts *parts, uint64_t high, uint64_t low)
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
    return parts_partition(parts, span->trace_id_high, span->trace_id);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The next span is the first of a part. Returns false when out of memory. */
static bool parts_begin(struct parts *parts, struct body *body, uint32_t partition)
{
    if (!ARRAY_FITS(parts->list, parts->room, parts->count) || !parts->list)
        return false;
    parts->list[parts->count++] = (struct part){body->count, body->count, partition};
    body_divide(body);
    return true;
}

/* The part that a span of this partition goes into. NULL: out of memory. */
static struct part *parts_find(struct parts *parts, struct body *body, uint32_t partition)
{
    const struct part *last = parts->count ? &parts->list[parts->count - 1] : NULL;

    if ((!last || last->partition != partition ||
         (parts->partitions && last->end - last->first >= parts->limits.spans)) &&
        !parts_begin(parts, body, partition))
        return NULL;
    return &parts->list[parts->count - 1];
}

static bool parts_is_too_long(const struct parts *parts, const struct part *part,
                              const struct body *body)
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

/* What is added to a body: a span, or unit `index` of another body. */
struct parts_unit {
    const struct span *span;
    bool *cut;
    const struct body *from;
    uint32_t index;
};

static bool parts_add_unit(struct body *body, struct encoder *encoder,
                           const struct parts_unit *unit)
{
    return unit->span ? body_add(body, encoder, unit->span, unit->cut)
                      : body_copy(body, unit->from, encoder, unit->index);
}

/* Returns false when out of memory. */
static bool parts_put(struct parts *parts, struct body *body, struct encoder *encoder,
                      uint32_t partition, const struct parts_unit *unit)
{
    struct part *part = parts_find(parts, body, partition);
    bool is_done = part && parts_add_unit(body, encoder, unit);

    if (is_done && parts_is_too_long(parts, part, body)) {
        body_remove_last(body, encoder);
        is_done = parts_begin(parts, body, partition) && parts_add_unit(body, encoder, unit);
    }
    if (is_done)
        parts->list[parts->count - 1].end = body->count;
    else
        parts_trim(parts, body);
    return is_done;
}

bool parts_add(struct parts *parts, struct body *body, struct encoder *encoder,
               const struct span *span, uint32_t partition, bool *cut)
{
    return parts_put(parts, body, encoder, partition,
                     &(struct parts_unit){.span = span, .cut = cut});
}

/* ---- spans that are encoded ------------------------------------------------------------------ */

struct parts_place {
    uint32_t partition, index;
};

static int parts_compare(const void *one, const void *other)
{
    const struct parts_place *a = one, *b = other;

    return a->partition != b->partition ? (a->partition > b->partition ? 1 : -1)
                                        : (a->index > b->index) - (a->index < b->index);
}

bool parts_arrange(struct parts *parts, const struct body *body, struct encoder *encoder,
                   uint32_t first, uint32_t end, struct body *arranged)
{
    const uint32_t spans = end - first;
    struct parts_place *places = malloc(spans * sizeof(*places));
    bool is_done = places != NULL;
    uint64_t id[2];

    for (uint32_t i = 0; is_done && i < spans; i++) {
        encoder->trace_of(body_unit(body, encoder, first + i), id);
        places[i] = (struct parts_place){parts_partition(parts, id[0], id[1]), first + i};
    }
    if (is_done)
        qsort(places, spans, sizeof(*places), parts_compare);
    for (uint32_t i = 0; is_done && i < spans; i++)
        is_done = parts_put(parts, arranged, encoder, places[i].partition,
                            &(struct parts_unit){.from = body, .index = places[i].index});
    free(places);
    return is_done;
}
