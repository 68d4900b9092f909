/*
 * Parts of OTLP's messages, written into room that the caller has reserved.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_WRITE_H
#define BLKIN_OUTPUT_OTLP_WRITE_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "babeltrace-plugin/encode/protobuf.h"

static inline char *otlp_put_text(char *at, char tag, struct text text)
{
    bool cut;

    *at++ = tag;
    return pb_put_text(at, text, LIMIT_NAME, &cut);
}

/* A message KeyValue of a text, in a field of this tag. */
static inline char *otlp_put_attribute(char *at, char tag, const char *key, struct text value)
{
    char *attribute, *any;

    *at++ = tag;
    attribute = at++;
    at = otlp_put_text(at, PB_BYTES(1), text_of(key));
    *at++ = PB_BYTES(2);
    any = at++;
    at = otlp_put_text(at, PB_BYTES(1), value);
    return pb_end(attribute, pb_end(any, at));
}

/* A long message, whose length is known at its end: *length is where that is, in data. */
static inline char *otlp_begin(char *at, char tag, size_t *length, const char *data)
{
    *at++ = tag;
    *length = (size_t)(at - data);
    return at + PB_PADDED;
}

static inline void otlp_end(char *data, size_t length, size_t end)
{
    pb_put_padded(data + length, (uint32_t)(end - length - PB_PADDED), PB_PADDED);
}

/* A message as it came, in a field of this tag; an empty one is left out. */
static inline char *otlp_put_raw(char *at, char tag, struct text message)
{
    if (message.length == 0)
        return at;
    *at++ = tag;
    return text_copy(pb_put_varint(at, message.length), message);
}

/* A ResourceSpans with one ScopeSpans, for whose spans, each a field 2, otlp_scope_begin() returns
 * the place. Besides what both are given they take OTLP_ORIGIN_MAX bytes of the buffer. */
#define OTLP_ORIGIN_MAX 64U

struct otlp_origin_places {
    size_t resource_spans, scope_spans;
};

/* Another ScopeSpans of the ResourceSpans that is at its end. */
static inline char *otlp_scope_begin(const struct buffer *buffer, char *at, struct text scope,
                                     struct text schema, struct otlp_origin_places *places)
{
    at = otlp_begin(at, PB_BYTES(2), &places->scope_spans, buffer->data);
    return otlp_put_raw(otlp_put_raw(at, PB_BYTES(1), scope), PB_BYTES(3), schema);
}

/* A ScopeSpans is to follow. */
static inline char *otlp_resource_begin(const struct buffer *buffer, struct text resource,
                                        struct text schema, struct otlp_origin_places *places)
{
    char *at = buffer->data + buffer->length;

    at = otlp_begin(at, PB_BYTES(1), &places->resource_spans, buffer->data);
    return otlp_put_raw(otlp_put_raw(at, PB_BYTES(1), resource), PB_BYTES(3), schema);
}

/* More spans, or another ScopeSpans, may follow: then both end again. */
static inline void otlp_origin_end(struct buffer *buffer, const struct otlp_origin_places *places,
                                   const char *at)
{
    buffer->length = (size_t)(at - buffer->data);
    otlp_end(buffer->data, places->scope_spans, buffer->length);
    otlp_end(buffer->data, places->resource_spans, buffer->length);
}

#endif
