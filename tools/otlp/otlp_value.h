/*
 * Reads fields of OTLP's messages. Writes values of attributes as JSON, as OpenTelemetry specifies
 * for other protocols (common, AnyValue). If the whole value is a text, bytes (base64) or empty, it
 * has no quotes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_VALUE_H
#define BLKIN_TOOLS_OTLP_VALUE_H

#include "babeltrace-plugin/encode/protobuf.h"

#include <stdbool.h>
#include <stddef.h>

/* The fields of messages, as a collector reads them:
 * opentelemetry/proto/{trace,common,resource}/v1. X(message, field, number, type on the wire, kind,
 * length of bytes that are not empty; 0: any) */
#define OTLP_FIELDS(X)                                                            \
    X(RESOURCE, ATTRIBUTE, 1, BYTES, ATTRIBUTE, 0)                                \
    X(RESOURCE, DROPPED, 2, VARINT, NUMBER, 0)                                    \
    X(SCOPE, NAME, 1, BYTES, TEXT, 0)                                             \
    X(SCOPE, VERSION, 2, BYTES, TEXT, 0)                                          \
    X(SCOPE, ATTRIBUTE, 3, BYTES, ATTRIBUTE, 0)                                   \
    X(SCOPE, DROPPED, 4, VARINT, NUMBER, 0)                                       \
    X(SPAN, TRACE_ID, 1, BYTES, BYTES, 16)                                        \
    X(SPAN, ID, 2, BYTES, BYTES, 8)                                               \
    X(SPAN, TRACE_STATE, 3, BYTES, TEXT, 0)                                       \
    X(SPAN, PARENT_ID, 4, BYTES, BYTES, 8)                                        \
    X(SPAN, NAME, 5, BYTES, TEXT, 0)                                              \
    X(SPAN, KIND, 6, VARINT, NUMBER, 0)                                           \
    X(SPAN, START, 7, FIXED64, NUMBER, 0)                                         \
    X(SPAN, END, 8, FIXED64, NUMBER, 0)                                           \
    X(SPAN, ATTRIBUTE, 9, BYTES, ATTRIBUTE, 0)                                    \
    X(SPAN, DROPPED_ATTRIBUTES, 10, VARINT, NUMBER, 0)                            \
    X(SPAN, EVENT, 11, BYTES, EVENT, 0)                                           \
    X(SPAN, DROPPED_EVENTS, 12, VARINT, NUMBER, 0)                                \
    X(SPAN, LINK, 13, BYTES, LINK, 0)                                             \
    X(SPAN, DROPPED_LINKS, 14, VARINT, NUMBER, 0)                                 \
    X(SPAN, STATUS, 15, BYTES, STATUS, 0)                                         \
    X(SPAN, FLAGS, 16, FIXED32, NUMBER, 0)                                        \
    X(EVENT, TIME, 1, FIXED64, NUMBER, 0)                                         \
    X(EVENT, NAME, 2, BYTES, TEXT, 0)                                             \
    X(EVENT, ATTRIBUTE, 3, BYTES, ATTRIBUTE, 0)                                   \
    X(EVENT, DROPPED, 4, VARINT, NUMBER, 0)                                       \
    X(LINK, TRACE_ID, 1, BYTES, BYTES, 16)                                        \
    X(LINK, SPAN_ID, 2, BYTES, BYTES, 8)                                          \
    X(LINK, TRACE_STATE, 3, BYTES, TEXT, 0)                                       \
    X(LINK, ATTRIBUTE, 4, BYTES, ATTRIBUTE, 0)                                    \
    X(LINK, DROPPED, 5, VARINT, NUMBER, 0)                                        \
    X(LINK, FLAGS, 6, FIXED32, NUMBER, 0)                                         \
    X(STATUS, NONE, 1, VARINT, NUMBER, 0) /* deprecated, and not read any more */ \
    X(STATUS, MESSAGE, 2, BYTES, TEXT, 0)                                         \
    X(STATUS, CODE, 3, VARINT, NUMBER, 0)                                         \
    X(ATTRIBUTE, KEY, 1, BYTES, TEXT, 0)                                          \
    X(ATTRIBUTE, VALUE, 2, BYTES, VALUE, 0)                                       \
    X(VALUE, STRING, 1, BYTES, TEXT, 0)                                           \
    X(VALUE, BOOL, 2, VARINT, NUMBER, 0)                                          \
    X(VALUE, INT, 3, VARINT, NUMBER, 0)                                           \
    X(VALUE, DOUBLE, 4, FIXED64, NUMBER, 0)                                       \
    X(VALUE, ARRAY, 5, BYTES, ARRAY, 0)                                           \
    X(VALUE, LIST, 6, BYTES, LIST, 0)                                             \
    X(VALUE, BYTES, 7, BYTES, BYTES, 0)                                           \
    X(ARRAY, VALUE, 1, BYTES, VALUE, 0)                                           \
    X(LIST, ATTRIBUTE, 1, BYTES, ATTRIBUTE, 0)

enum otlp_field {
    OTLP_ANY = 0, /* for otlp_find_field(): any field, such as those of AnyValue */

    OTLP_REQUEST_RESOURCE_SPANS = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_RESOURCE_SPANS_RESOURCE = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_RESOURCE_SPANS_SCOPE_SPANS = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_SCOPE_SPANS_SCOPE = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_SCOPE_SPANS_SPAN = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_SCOPE_SPANS_SCHEMA = PB_TAG(3, PB_TYPE_BYTES),

#define OTLP_FIELD(of, name, number, type, kind, length) \
    OTLP_##of##_##name = PB_TAG(number, PB_TYPE_##type),
    OTLP_FIELDS(OTLP_FIELD)
#undef OTLP_FIELD
};

enum { OTLP_STATUS_OK = 1, OTLP_STATUS_ERROR = 2 };

/* Finds the last field of this tag: in protobuf, the last one counts. Stops at a fault. Returns
 * false without such a field. */
static inline bool otlp_find_field(struct text message, enum otlp_field tag,
                                   struct pb_member *found)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    bool is_found = false;

    while (pb_next(&reader, &field)) {
        if (tag != OTLP_ANY && field.tag != (uint32_t)tag)
            continue;
        *found = field;
        is_found = true;
    }
    return is_found;
}

static inline struct text otlp_find(struct text message, enum otlp_field tag)
{
    struct pb_member field = {.bytes = NULL}; /* gcc warns without an initial value */

    return otlp_find_field(message, tag, &field) ? pb_text(&field) : (struct text){"", 0};
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* A text in a fixed array. The part that does not fit is cut off. */
struct otlp_line {
    char *data;
    size_t size;
    size_t length;
};

void otlp_line_put(struct otlp_line *line, struct text text);
void otlp_line_put_string(struct otlp_line *line, const char *string);

static inline struct text otlp_line_text(const struct otlp_line *line)
{
    return (struct text){line->data, line->length};
}

/* Finds the next attribute of a message whose attributes are fields of this tag. value: the message
 * AnyValue. */
static inline bool otlp_next_attribute(struct pb_reader *reader, enum otlp_field tag,
                                       struct text *key, struct text *value)
{
    struct pb_member field;

    while (pb_next(reader, &field)) {
        if (field.tag != (uint32_t)tag)
            continue;
        *key = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY);
        *value = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE);
        return true;
    }
    return false;
}

/* Returns the message AnyValue of the first attribute with this key; data is NULL without one. */
static inline struct text otlp_attribute(struct text message, enum otlp_field tag, struct text key)
{
    struct pb_reader reader = pb_reader_of(message);
    struct text found, value;

    while (otlp_next_attribute(&reader, tag, &found, &value)) {
        if (text_equal(found, key))
            return value;
    }
    return (struct text){NULL, 0};
}

/* Returns the code of a message Status. */
static inline uint64_t otlp_status_code(struct text status)
{
    struct pb_member field;

    return otlp_find_field(status, OTLP_STATUS_CODE, &field) ? field.value : 0;
}

/* Returns false if the value is no integer. */
static inline bool otlp_value_integer(struct text value, int64_t *number)
{
    struct pb_member field;

    if (!otlp_find_field(value, OTLP_ANY, &field) || field.tag != OTLP_VALUE_INT)
        return false;
    *number = (int64_t)field.value;
    return true;
}

/* Writes a message AnyValue. depth: the number of values around it. */
void otlp_value_put(struct otlp_line *line, struct text value, unsigned depth);

/* Writes the attributes of a message, which are fields of this tag: {"key":value,...}, or {}. */
void otlp_value_put_attributes(struct otlp_line *line, struct text message, enum otlp_field tag,
                               unsigned depth);

#endif
