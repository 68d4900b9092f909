/*
 * Parts of OTLP's messages, written into room that the caller has reserved.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_WRITE_H
#define BLKIN_TOOLS_OTLP_WRITE_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "babeltrace-plugin/encode/protobuf.h"

/* Begins a message whose length is written by otlp_end(). *length: the index of the length. */
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

/* Copies a message as a field of this tag. Writes nothing for an empty message. */
static inline char *otlp_put_raw(char *at, char tag, struct text message)
{
    if (message.length == 0)
        return at;
    *at++ = tag;
    return text_copy(pb_put_varint(at, message.length), message);
}

/* The bytes of a ResourceSpans and a ScopeSpans besides their messages and schema URLs. */
#define OTLP_ORIGIN_MAX 64U

/* The indexes of the two lengths in the buffer. */
struct otlp_origin_at {
    size_t resource_spans, scope_spans;
};

/* Begins the next ScopeSpans of the last ResourceSpans. Returns the address for its spans, each of
 * which is a field 2. */
static inline char *otlp_scope_begin(const struct buffer *buffer, char *at, struct text scope,
                                     struct text schema, struct otlp_origin_at *lengths)
{
    at = otlp_begin(at, PB_BYTES(2), &lengths->scope_spans, buffer->data);
    return otlp_put_raw(otlp_put_raw(at, PB_BYTES(1), scope), PB_BYTES(3), schema);
}

/* Begins a ResourceSpans. otlp_scope_begin() must follow. */
static inline char *otlp_resource_begin(const struct buffer *buffer, struct text resource,
                                        struct text schema, struct otlp_origin_at *lengths)
{
    char *at = buffer->data + buffer->length;

    at = otlp_begin(at, PB_BYTES(1), &lengths->resource_spans, buffer->data);
    return otlp_put_raw(otlp_put_raw(at, PB_BYTES(1), resource), PB_BYTES(3), schema);
}

/* Ends both messages at `at`. More spans or another ScopeSpans may follow; then the caller calls
 * this function again. */
static inline void otlp_origin_end(struct buffer *buffer, const struct otlp_origin_at *lengths,
                                   const char *at)
{
    buffer->length = (size_t)(at - buffer->data);
    otlp_end(buffer->data, lengths->scope_spans, buffer->length);
    otlp_end(buffer->data, lengths->resource_spans, buffer->length);
}

#endif
