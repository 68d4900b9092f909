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

/* The fields of messages that are read here: opentelemetry/proto/{collector/trace,trace,common,
 * resource}/v1. */
enum otlp_field {
    OTLP_ANY = 0, /* for otlp_find_field(): any field, such as those of AnyValue */

    OTLP_REQUEST_RESOURCE_SPANS = PB_TAG(1, PB_TYPE_BYTES),

    OTLP_RESOURCE_SPANS_RESOURCE = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_RESOURCE_SPANS_SCOPE_SPANS = PB_TAG(2, PB_TYPE_BYTES),

    OTLP_SCOPE_SPANS_SCOPE = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_SCOPE_SPANS_SPAN = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_SCOPE_SPANS_SCHEMA = PB_TAG(3, PB_TYPE_BYTES),

    OTLP_RESOURCE_ATTRIBUTE = PB_TAG(1, PB_TYPE_BYTES),

    OTLP_SCOPE_NAME = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_SCOPE_VERSION = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_SCOPE_ATTRIBUTE = PB_TAG(3, PB_TYPE_BYTES),

    OTLP_SPAN_TRACE_ID = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_SPAN_ID = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_SPAN_TRACE_STATE = PB_TAG(3, PB_TYPE_BYTES),
    OTLP_SPAN_PARENT_ID = PB_TAG(4, PB_TYPE_BYTES),
    OTLP_SPAN_NAME = PB_TAG(5, PB_TYPE_BYTES),
    OTLP_SPAN_KIND = PB_TAG(6, PB_TYPE_VARINT),
    OTLP_SPAN_START = PB_TAG(7, PB_TYPE_FIXED64),
    OTLP_SPAN_END = PB_TAG(8, PB_TYPE_FIXED64),
    OTLP_SPAN_ATTRIBUTE = PB_TAG(9, PB_TYPE_BYTES),
    OTLP_SPAN_DROPPED_ATTRIBUTES = PB_TAG(10, PB_TYPE_VARINT),
    OTLP_SPAN_EVENT = PB_TAG(11, PB_TYPE_BYTES),
    OTLP_SPAN_DROPPED_EVENTS = PB_TAG(12, PB_TYPE_VARINT),
    OTLP_SPAN_LINK = PB_TAG(13, PB_TYPE_BYTES),
    OTLP_SPAN_DROPPED_LINKS = PB_TAG(14, PB_TYPE_VARINT),
    OTLP_SPAN_STATUS = PB_TAG(15, PB_TYPE_BYTES),
    OTLP_SPAN_FLAGS = PB_TAG(16, PB_TYPE_FIXED32),

    OTLP_EVENT_TIME = PB_TAG(1, PB_TYPE_FIXED64),
    OTLP_EVENT_NAME = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_EVENT_ATTRIBUTE = PB_TAG(3, PB_TYPE_BYTES),

    OTLP_LINK_TRACE_ID = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_LINK_SPAN_ID = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_LINK_TRACE_STATE = PB_TAG(3, PB_TYPE_BYTES),
    OTLP_LINK_ATTRIBUTE = PB_TAG(4, PB_TYPE_BYTES),
    OTLP_LINK_DROPPED = PB_TAG(5, PB_TYPE_VARINT),

    OTLP_STATUS_MESSAGE = PB_TAG(2, PB_TYPE_BYTES),
    OTLP_STATUS_CODE = PB_TAG(3, PB_TYPE_VARINT),

    OTLP_ATTRIBUTE_KEY = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_ATTRIBUTE_VALUE = PB_TAG(2, PB_TYPE_BYTES),

    OTLP_VALUE_STRING = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_VALUE_BOOL = PB_TAG(2, PB_TYPE_VARINT),
    OTLP_VALUE_INT = PB_TAG(3, PB_TYPE_VARINT),
    OTLP_VALUE_DOUBLE = PB_TAG(4, PB_TYPE_FIXED64),
    OTLP_VALUE_ARRAY = PB_TAG(5, PB_TYPE_BYTES),
    OTLP_VALUE_LIST = PB_TAG(6, PB_TYPE_BYTES),
    OTLP_VALUE_BYTES = PB_TAG(7, PB_TYPE_BYTES),

    OTLP_ARRAY_VALUE = PB_TAG(1, PB_TYPE_BYTES),
    OTLP_LIST_ATTRIBUTE = PB_TAG(1, PB_TYPE_BYTES),
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
