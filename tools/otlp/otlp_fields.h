/*
 * The fields of OTLP's messages that we read: opentelemetry/proto/{collector/trace,trace,common,
 * resource}/v1.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_FIELDS_H
#define BLKIN_TOOLS_OTLP_FIELDS_H

#include "babeltrace-plugin/encode/protobuf.h"

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
    struct pb_member field = {.bytes = NULL}; /* for gcc, which sees it unset */

    return otlp_find_field(message, tag, &field) ? pb_text(&field) : (struct text){"", 0};
}

#endif
