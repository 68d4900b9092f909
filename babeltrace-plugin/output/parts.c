/*
 * Parts of a body.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "kafka_partition.h"

struct parts *parts_new(void)
{
    return calloc(1, sizeof(struct parts));
}

void parts_free(struct parts *parts)
{
    if (!parts)
        return;
    free(parts->of_span);
    free(parts);
}

/* Where span i of the body ends, or what follows it begins. */
static size_t end_of(const struct body *body, const struct encoder *encoder, uint32_t i)
{
    return i + 1 == body->count ? body->buffer.length
                                : body->starts[i + 1] - encoder->separator.length;
}

/* ---- partitions ------------------------------------------------------------------------------ */

static bool reserve(struct parts *parts, uint32_t spans)
{
    uint32_t *larger;

    if (spans <= parts->capacity)
        return true;
    larger = realloc(parts->of_span, spans * sizeof(*larger));
    if (!larger)
        return false;
    parts->of_span = larger;
    parts->capacity = spans;
    return true;
}

/* Spans of one trace often come together. */
struct last {
    uint64_t id[2];
    uint32_t partition;
    bool is_set;
};

static uint32_t find(const struct body *body, const struct encoder *encoder, uint32_t i,
                     uint32_t partitions, struct last *last)
{
    const size_t start = body->starts[i];
    uint64_t id[2] = {0};

    if (partitions <= 1)
        return 0;
    encoder->trace_of((struct text){body->buffer.data + start, end_of(body, encoder, i) - start},
                      id);
    if (!last->is_set || id[0] != last->id[0] || id[1] != last->id[1])
        *last = (struct last){
            {id[0], id[1]}, kafka_partition(id[0], id[1], partitions), .is_set = true};
    return last->partition;
}

/* ---- the order ------------------------------------------------------------------------------- */

static bool is_arranged(const uint32_t *of_span, uint32_t spans)
{
    uint32_t i = 1;

    while (i < spans && of_span[i - 1] <= of_span[i])
        i++;
    return i >= spans;
}

/* places[p] becomes the place of the first span of partition p. */
static void count(const uint32_t *of_span, uint32_t spans, uint32_t *places, uint32_t partitions)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < spans; i++)
        places[of_span[i]]++;
    for (uint32_t p = 0; p < partitions; p++) {
        const uint32_t here = places[p];

        places[p] = sum;
        sum += here;
    }
}

/* What the spans are copied out to, and back in from in their new order. */
struct scratch {
    uint32_t *places;
    uint32_t *order; /* order[place]: which span goes there */
    uint32_t *lengths;
    char *text;
};

static void move(struct parts *parts, struct body *body, const struct encoder *encoder,
                 uint32_t first, uint32_t spans, struct scratch *scratch)
{
    const uint32_t begin = body->starts[first];
    char *at = body->buffer.data + begin;

    for (uint32_t i = 0; i < spans; i++) {
        scratch->order[scratch->places[parts->of_span[i]]++] = i;
        scratch->lengths[i] = (uint32_t)end_of(body, encoder, first + i) - body->starts[first + i];
    }
    memcpy(scratch->text, at, end_of(body, encoder, first + spans - 1) - begin);
    for (uint32_t i = 0; i < spans; i++) { /* where each was, before that is written over */
        scratch->places[i] = body->starts[first + i] - begin;
    }
    for (uint32_t i = 0; i < spans; i++) {
        const uint32_t from = scratch->order[i];

        if (i > 0) {
            memcpy(at, encoder->separator.data, encoder->separator.length);
            at += encoder->separator.length;
        }
        body->starts[first + i] = (uint32_t)(at - body->buffer.data);
        memcpy(at, scratch->text + scratch->places[from], scratch->lengths[from]);
        at += scratch->lengths[from];
    }
    for (uint32_t i = 0; i < spans; i++)
        scratch->lengths[i] = parts->of_span[scratch->order[i]];
    memcpy(parts->of_span, scratch->lengths, spans * sizeof(*parts->of_span));
}

static void arrange(struct parts *parts, struct body *body, const struct encoder *encoder,
                    uint32_t first, uint32_t spans)
{
    const uint32_t places = spans > parts->partitions ? spans : parts->partitions;
    const size_t length = end_of(body, encoder, first + spans - 1) - body->starts[first];
    struct scratch scratch = {
        .places = calloc(places, sizeof(uint32_t)),
        .order = malloc(spans * sizeof(uint32_t)),
        .lengths = malloc(spans * sizeof(uint32_t)),
        .text = malloc(length),
    };

    if (scratch.places && scratch.order && scratch.lengths && scratch.text) {
        count(parts->of_span, spans, scratch.places, parts->partitions);
        move(parts, body, encoder, first, spans, &scratch);
    }
    free(scratch.places);
    free(scratch.order);
    free(scratch.lengths);
    free(scratch.text);
}

void parts_arrange(struct parts *parts, struct body *body, const struct encoder *encoder,
                   uint32_t first, uint32_t end, uint32_t partitions)
{
    const uint32_t spans = end - first;
    struct last last = {.is_set = false};

    parts->partitions = partitions;
    parts->first = first;
    if (!reserve(parts, spans)) {
        free(parts->of_span);
        parts->of_span = NULL;
        parts->capacity = 0;
        return;
    }
    for (uint32_t i = 0; i < spans; i++)
        parts->of_span[i] = find(body, encoder, first + i, partitions, &last);
    if (!is_arranged(parts->of_span, spans))
        arrange(parts, body, encoder, first, spans);
}

/* ---- the parts ------------------------------------------------------------------------------- */

uint32_t parts_divide(struct parts *parts, const struct body *body, const struct encoder *encoder,
                      uint32_t first, uint32_t end, const struct part_limits *limits)
{
    struct last last = {.is_set = false};
    uint32_t i = first;

    parts->count = 0;
    for (; i < end; i++) {
        const uint32_t partition = parts->of_span
                                       ? parts->of_span[i - parts->first]
                                       : find(body, encoder, i, parts->partitions, &last);
        struct part *part = parts->count ? &parts->part[parts->count - 1] : NULL;

        if (!part || part->partition != partition ||
            (parts->partitions &&
             (i - part->first >= limits->spans ||
              end_of(body, encoder, i) - body->starts[part->first] > limits->bytes))) {
            if (parts->count == PARTS_MAX)
                break;
            part = &parts->part[parts->count++];
            part->first = i;
            part->partition = partition;
        }
        part->end = i + 1;
    }
    return i;
}
