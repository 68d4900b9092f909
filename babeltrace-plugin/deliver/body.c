/* SPDX-License-Identifier: BSD-2-Clause */
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

/* Writes the bytes before the next span, for which a start is reserved. */
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

struct text body_unit(const struct body *body, const struct encoder *encoder, uint32_t i)
{
    const uint32_t begin = body->starts[i];
    const size_t end = i + 1 == body->count ? body->buffer.length
                                            : body->starts[i + 1] - encoder->separator.length;

    return (struct text){body->buffer.data + begin, end - begin};
}

bool body_append(struct body *body, const struct encoder *encoder, struct text head,
                 struct text unit)
{
    const size_t before = body->buffer.length;

    if (!body_begin_span(body, encoder))
        return false;
    if (!buffer_reserve(&body->buffer, head.length + unit.length + encoder->close.length)) {
        body->buffer.length = before;
        return false;
    }
    body->starts[body->count++] = (uint32_t)body->buffer.length;
    buffer_put(&body->buffer, head.data, head.length);
    buffer_put(&body->buffer, unit.data, unit.length);
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

void body_frame(struct body_run run, const struct encoder *encoder, struct framed *framed)
{
    struct body *const body = run.body;
    char *const data = body->buffer.data;
    char *begin, *spans;

    framed->end = run.end == body->count ? data + body->buffer.length
                                         : data + body->starts[run.end] - encoder->separator.length;
    if (encoder->frame)
        encoder->frame(data, body->starts, run.first, run.end, (size_t)(framed->end - data));
    spans = data + body->starts[run.first];
    begin = spans - encoder->open.length;
    (void)text_copy(begin, encoder->open);
    if (run.end < body->count)
        memcpy(framed->saved, framed->end, encoder->close.length);
    else
        memset(framed->saved, 0, sizeof(framed->saved));
    (void)text_copy(framed->end, encoder->close);
    framed->payload = (struct payload){
        .text = {begin, (size_t)(framed->end - begin) + encoder->close.length},
        .spans = {spans, (size_t)(framed->end - spans)},
        .partition = run.partition,
        .partitions = run.partitions,
        .stays = encoder->frame != NULL, /* without a frame, neighbours share a byte */
    };
}

void body_unframe(const struct encoder *encoder, const struct framed *framed)
{
    memcpy(framed->end, framed->saved, encoder->close.length);
}
