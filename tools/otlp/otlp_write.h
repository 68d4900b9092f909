/*
 * Parts of OTLP's messages, written into room that the caller has reserved.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_WRITE_H
#define BLKIN_OUTPUT_OTLP_WRITE_H

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

static inline char *otlp_put_double(char *at, char tag, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    *at++ = tag;
    return pb_put_fixed64(at, bits);
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

#endif
