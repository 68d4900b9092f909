/*
 * Bodies.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "body.h"

#include "babeltrace-plugin/base/array.h"

void body_destroy(struct body *body)
{
    buffer_free(&body->buffer);
    free(body->starts);
    *body = (struct body){.count = 0};
}

void body_reset(struct body *body)
{
    body->buffer.length = 0;
    body->count = 0;
    body->group = 0;
}

/* Writes what is before the next span, for which a start is reserved. */
static bool body_begin_span(struct body *body, const struct encoder *encoder)
{
    const struct text before = body->count ? encoder->separator : encoder->open;

    if (!ARRAY_FITS(body->starts, body->starts_room, body->count) ||
        !buffer_reserve(&body->buffer, before.length))
        return false;
    buffer_put(&body->buffer, before.data, before.length);
    return true;
}

bool body_add(struct body *body, struct encoder *encoder, const struct span *span, bool *cut)
{
    const size_t before = body->buffer.length;
    uint64_t group = body->group;
    size_t start;

    if (!body_begin_span(body, encoder))
        return false;
    start = body->buffer.length;
    if (!encoder->encode(encoder, &body->buffer, span, &group, cut) ||
        !buffer_reserve(&body->buffer, encoder->close.length)) {
        body->buffer.length = before;
        return false;
    }
    body->starts[body->count++] = (uint32_t)start;
    body->group = group;
    return true;
}

void body_divide(struct body *body)
{
    body->group = 0;
}

struct text body_unit(const struct body *body, const struct encoder *encoder, uint32_t i)
{
    const uint32_t begin = body->starts[i];
    const size_t end = i + 1 == body->count ? body->buffer.length
                                            : body->starts[i + 1] - encoder->separator.length;

    return (struct text){body->buffer.data + begin, end - begin};
}

bool body_copy(struct body *to, const struct body *from, const struct encoder *encoder, uint32_t i)
{
    const struct text unit = body_unit(from, encoder, i);
    const size_t before = to->buffer.length;
    struct text head = {NULL, 0};

    if (encoder->head_of)
        head = encoder->head_of(from->buffer.data, from->starts, i);
    if (!body_begin_span(to, encoder))
        return false;
    if (!buffer_reserve(&to->buffer, head.length + unit.length + encoder->close.length)) {
        to->buffer.length = before;
        return false;
    }
    to->starts[to->count++] = (uint32_t)to->buffer.length;
    buffer_put(&to->buffer, head.data, head.length);
    buffer_put(&to->buffer, unit.data, unit.length);
    body_divide(to);
    return true;
}

void body_remove_last(struct body *body, const struct encoder *encoder)
{
    body->buffer.length = body->starts[--body->count] - encoder->separator.length;
    body->group = 0;
}

char *body_reserve(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length)
{
    body_reset(body);
    if (!ARRAY_FITS(body->starts, body->starts_room, spans) ||
        !buffer_reserve(&body->buffer, encoder->open.length + length + encoder->close.length))
        return NULL;
    return body->buffer.data + encoder->open.length;
}

void body_fill(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length)
{
    buffer_put(&body->buffer, encoder->open.data, encoder->open.length);
    body->buffer.length += length;
    body->count = spans;
    for (uint32_t i = 0; i < spans; i++)
        body->starts[i] += (uint32_t)encoder->open.length;
}

size_t body_length(const struct body *body, const struct encoder *encoder)
{
    return body->buffer.length + encoder->close.length;
}

void body_frame(struct body *body, const struct encoder *encoder, uint32_t first, uint32_t end,
                struct framed *framed)
{
    char *const data = body->buffer.data;
    char *begin;

    framed->end = end == body->count ? data + body->buffer.length
                                     : data + body->starts[end] - encoder->separator.length;
    if (encoder->frame)
        encoder->frame(data, body->starts, first, end, (size_t)(framed->end - data));
    begin = data + body->starts[first] - encoder->open.length;
    (void)text_copy(begin, encoder->open);
    if (end < body->count)
        memcpy(framed->saved, framed->end, encoder->close.length);
    else
        memset(framed->saved, 0, sizeof(framed->saved));
    (void)text_copy(framed->end, encoder->close);
    framed->payload = (struct payload){
        .text = {begin, (size_t)(framed->end - begin) + encoder->close.length},
        .spans = {data + body->starts[first], (size_t)(framed->end - (data + body->starts[first]))},
    };
}

void body_unframe(const struct encoder *encoder, const struct framed *framed)
{
    memcpy(framed->end, framed->saved, encoder->close.length);
}
