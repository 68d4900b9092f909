/*
 * Batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"

#define FIRST_STARTS 64

struct batch *batch_new(void)
{
    return calloc(1, sizeof(struct batch));
}

void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    buffer_free(&batch->buffer);
    free(batch->starts);
    free(batch);
}

void batch_reset(struct batch *batch)
{
    batch->next = NULL;
    batch->buffer.length = 0;
    batch->count = 0;
}

static bool reserve_start(struct batch *batch)
{
    const uint32_t capacity = batch->starts_capacity ? batch->starts_capacity * 2 : FIRST_STARTS;
    uint32_t *starts;

    if (batch->count < batch->starts_capacity)
        return true;
    starts = realloc(batch->starts, capacity * sizeof(*starts));
    if (!starts)
        return false;
    batch->starts = starts;
    batch->starts_capacity = capacity;
    return true;
}

/* Without a check: there is room. */
static void append(struct buffer *buffer, struct text text)
{
    memcpy(buffer->data + buffer->length, text.data, text.length);
    buffer->length += text.length;
}

/* Writes what is before the next span, for which a start is reserved. */
static bool begin_span(struct batch *batch, const struct encoder *encoder)
{
    const struct text before = batch->count ? encoder->separator : encoder->open;

    if (!reserve_start(batch) || !buffer_reserve(&batch->buffer, before.length))
        return false;
    append(&batch->buffer, before);
    return true;
}

bool batch_add(struct batch *batch, struct encoder *encoder, const struct span *span, bool *cut)
{
    const size_t before = batch->buffer.length;
    size_t start;

    if (!begin_span(batch, encoder))
        return false;
    start = batch->buffer.length;
    if (!encoder->encode(encoder, &batch->buffer, span, cut) ||
        !buffer_reserve(&batch->buffer, encoder->close.length)) {
        batch->buffer.length = before;
        return false;
    }
    batch->starts[batch->count++] = (uint32_t)start;
    return true;
}

bool batch_move_last(struct batch *from, struct batch *to, const struct encoder *encoder)
{
    const uint32_t start = from->starts[from->count - 1];
    const struct text span = {from->buffer.data + start, from->buffer.length - start};

    if (!begin_span(to, encoder))
        return false;
    if (!buffer_reserve(&to->buffer, span.length + encoder->close.length)) {
        batch_reset(to);
        return false;
    }
    to->starts[to->count++] = (uint32_t)to->buffer.length;
    append(&to->buffer, span);
    from->count--;
    from->buffer.length = start - encoder->separator.length;
    return true;
}

void batch_frame(struct batch *batch, const struct encoder *encoder, uint32_t first, uint32_t end,
                 struct framed *framed)
{
    char *const data = batch->buffer.data;
    char *const begin = data + batch->starts[first] - encoder->open.length;

    framed->end = end == batch->count ? data + batch->buffer.length
                                      : data + batch->starts[end] - encoder->separator.length;
    memcpy(begin, encoder->open.data, encoder->open.length);
    if (end < batch->count)
        memcpy(framed->saved, framed->end, encoder->close.length);
    else
        memset(framed->saved, 0, sizeof(framed->saved));
    memcpy(framed->end, encoder->close.data, encoder->close.length);
    framed->payload = (struct payload){
        .text = {begin, (size_t)(framed->end - begin) + encoder->close.length},
        .spans = {data + batch->starts[first],
                  (size_t)(framed->end - (data + batch->starts[first]))},
    };
}

void batch_unframe(const struct encoder *encoder, const struct framed *framed)
{
    memcpy(framed->end, framed->saved, encoder->close.length);
}
