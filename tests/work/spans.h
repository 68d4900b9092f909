/*
 * OTLP requests for the tests, written by hand: small spans of any service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_WORK_SPANS_H
#define TESTS_WORK_SPANS_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/encode/protobuf.h"

#include <stdlib.h>
#include <string.h>

struct test_span {
    uint64_t trace_id;
    uint64_t id;
    uint64_t parent_id;
    int64_t start_ns;
    int64_t duration_ns;
    const char *service;
    const char *name;
    int kind; /* OTLP's */
    bool is_error;
    const char *schema, *scope_schema; /* NULL: none */
};

static inline char *put_string(char *at, char tag, const char *text)
{
    return pb_put_literal(at, tag, text, strlen(text));
}

static inline char *put_test_span(char *at, const struct test_span *span)
{
    char *length;

    *at++ = PB_BYTES(2); /* of ScopeSpans */
    length = at++;
    *at++ = PB_BYTES(1);
    *at++ = 16;
    at = pb_put_id(pb_put_id(at, 7), span->trace_id);
    *at++ = PB_BYTES(2);
    *at++ = 8;
    at = pb_put_id(at, span->id);
    if (span->parent_id) {
        *at++ = PB_BYTES(4);
        *at++ = 8;
        at = pb_put_id(at, span->parent_id);
    }
    at = put_string(at, PB_BYTES(5), span->name);
    *at++ = PB_VARINT(6);
    *at++ = (char)span->kind;
    *at++ = PB_FIXED64(7);
    at = pb_put_fixed64(at, (uint64_t)span->start_ns);
    *at++ = PB_FIXED64(8);
    at = pb_put_fixed64(at, (uint64_t)(span->start_ns + span->duration_ns));
    if (span->is_error) {
        *at++ = PB_BYTES(15);
        *at++ = 2;
        *at++ = PB_VARINT(3);
        *at++ = 2;
    }
    return pb_end(length, at);
}

/* Appends a ResourceSpans of one span: any number of them is a request. */
static inline void add_test_span(struct buffer *buffer, const struct test_span *span)
{
    char *at, *group, *part, *attribute, *value;

    if (!buffer_reserve(buffer, 1024))
        abort();
    at = buffer->data + buffer->length;
    *at++ = PB_BYTES(1);
    group = at++;
    *at++ = PB_BYTES(1); /* Resource */
    part = at++;
    *at++ = PB_BYTES(1);
    attribute = at++;
    at = put_string(at, PB_BYTES(1), "service.name");
    *at++ = PB_BYTES(2);
    value = at++;
    at = put_string(at, PB_BYTES(1), span->service);
    at = pb_end(part, pb_end(attribute, pb_end(value, at)));
    *at++ = PB_BYTES(2); /* ScopeSpans */
    part = at++;
    at = put_test_span(at, span);
    if (span->scope_schema)
        at = put_string(at, PB_BYTES(3), span->scope_schema);
    at = pb_end(part, at);
    if (span->schema)
        at = put_string(at, PB_BYTES(3), span->schema);
    at = pb_end(group, at);
    buffer->length = (size_t)(at - buffer->data);
}

#endif
