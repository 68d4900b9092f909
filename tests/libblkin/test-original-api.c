/*
 * The original C API without a session: layouts, constants, return codes, macros, and rules for
 * NULL.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include "check.h"

#include <errno.h>
#include <stddef.h>

/* Sizes and offsets of the original on LP64. */
_Static_assert(sizeof(struct blkin_endpoint) == 24, "struct blkin_endpoint");
_Static_assert(offsetof(struct blkin_endpoint, port) == 8, "port");
_Static_assert(offsetof(struct blkin_endpoint, name) == 16, "name");
_Static_assert(sizeof(struct blkin_trace_info) == 24, "struct blkin_trace_info");
_Static_assert(sizeof(struct blkin_trace_info_packed) == 24, "struct blkin_trace_info_packed");
_Static_assert(_Alignof(struct blkin_trace_info_packed) == 1, "packed");
_Static_assert(sizeof(struct blkin_trace) == 40, "struct blkin_trace");
_Static_assert(offsetof(struct blkin_trace, info) == 8, "info");
_Static_assert(sizeof(struct blkin_annotation) == 32, "struct blkin_annotation");
_Static_assert(ANNOT_STRING == 0 && ANNOT_INTEGER == 1 && ANNOT_TIMESTAMP == 2, "types");

/* The types of functions: a program with function pointers depends on them. */
int (*const init_endpoint)(struct blkin_endpoint *, const char *, int16_t,
                           const char *) = blkin_init_endpoint;
int (*const init_child)(struct blkin_trace *, const struct blkin_trace *,
                        const struct blkin_endpoint *, const char *) = blkin_init_child;

static struct blkin_endpoint endpoint;
static struct blkin_trace trace;

TEST(test_constants)
{
    CHECK_TEXT(CLIENT_SEND, "cs");
    CHECK_TEXT(CLIENT_RECV, "cr");
    CHECK_TEXT(SERVER_SEND, "ss");
    CHECK_TEXT(SERVER_RECV, "sr");
    CHECK_TEXT(WIRE_SEND, "ws");
    CHECK_TEXT(WIRE_RECV, "wr");
    CHECK_TEXT(CLIENT_SEND_FRAGMENT, "csf");
    CHECK_TEXT(CLIENT_RECV_FRAGMENT, "crf");
    CHECK_TEXT(SERVER_SEND_FRAGMENT, "ssf");
    CHECK_TEXT(SERVER_RECV_FRAGMENT, "srf");
}

TEST(test_endpoint)
{
    struct blkin_endpoint unknown;

    CHECK(blkin_init_endpoint(NULL, "10.0.0.1", 1, "service") == -EINVAL);
    CHECK(init_endpoint(&endpoint, "10.0.0.1", 6789, "service") == 0);
    CHECK_TEXT(endpoint.ip, "10.0.0.1");
    CHECK(endpoint.port == 6789);
    CHECK_TEXT(endpoint.name, "service");
    CHECK(blkin_init_endpoint(&unknown, NULL, 0, NULL) == 0);
    CHECK_TEXT(unknown.ip, "NaN");
    CHECK(unknown.name == NULL);
}

TEST(test_new_trace)
{
    CHECK(blkin_init_new_trace(NULL, "name", &endpoint) == -EINVAL);
    CHECK(blkin_init_new_trace(&trace, NULL, NULL) == 0);
    CHECK(blkin_init_new_trace(&trace, "write", &endpoint) == 0);
    CHECK_TEXT(trace.name, "write");
    CHECK(trace.endpoint == &endpoint);
    CHECK(trace.info.trace_id != 0);
    CHECK(trace.info.span_id == trace.info.trace_id);
    CHECK(trace.info.parent_span_id == 0);
}

TEST(test_child)
{
    struct blkin_trace child;
    struct blkin_trace no_endpoint = trace;
    struct blkin_endpoint other;

    no_endpoint.endpoint = NULL;
    blkin_init_endpoint(&other, "10.0.0.2", 1, "other");
    CHECK(blkin_init_child(NULL, &trace, &endpoint, "c") == -EINVAL);
    CHECK(blkin_init_child(&child, NULL, &endpoint, "c") == -EINVAL);
    CHECK(blkin_init_child(&child, &no_endpoint, NULL, "c") == -EINVAL);
    CHECK(init_child(&child, &trace, NULL, "c") == 0);
    CHECK(child.endpoint == &endpoint);
    CHECK_TEXT(child.name, "c");
    CHECK(child.info.trace_id == trace.info.trace_id);
    CHECK(child.info.parent_span_id == trace.info.span_id);
    CHECK(child.info.span_id != trace.info.span_id && child.info.span_id != 0);
    CHECK(blkin_init_child(&child, &no_endpoint, &other, "c") == 0);
    CHECK(child.endpoint == &other);

    CHECK(blkin_init_child_info(NULL, &trace.info, &endpoint, "c") == -EINVAL);
    CHECK(blkin_init_child_info(&child, NULL, &endpoint, "c") == -EINVAL);
    CHECK(blkin_init_child_info(&child, &trace.info, NULL, "c") == -EINVAL);
    CHECK(blkin_init_child_info(&child, &trace.info, &endpoint, "c") == 0);
    CHECK(child.info.parent_span_id == trace.info.span_id);
}

TEST(test_annotations)
{
    struct blkin_annotation annotation;

    CHECK(blkin_init_string_annotation(NULL, "k", "v", NULL) == -EINVAL);
    CHECK(blkin_init_string_annotation(&annotation, NULL, "v", NULL) == -EINVAL);
    CHECK(blkin_init_string_annotation(&annotation, "k", NULL, NULL) == -EINVAL);
    CHECK(blkin_init_string_annotation(&annotation, "k", "v", &endpoint) == 0);
    CHECK(annotation.type == ANNOT_STRING && annotation.endpoint == &endpoint);
    CHECK_TEXT(annotation.key, "k");
    CHECK_TEXT(annotation.val_str, "v");

    CHECK(blkin_init_integer_annotation(NULL, "k", 1, NULL) == -EINVAL);
    CHECK(blkin_init_integer_annotation(&annotation, NULL, 1, NULL) == -EINVAL);
    CHECK(blkin_init_integer_annotation(&annotation, "k", INT64_MIN, NULL) == 0);
    CHECK(annotation.type == ANNOT_INTEGER && annotation.val_int == INT64_MIN);

    CHECK(blkin_init_timestamp_annotation(NULL, "e", NULL) == -EINVAL);
    CHECK(blkin_init_timestamp_annotation(&annotation, NULL, NULL) == -EINVAL);
    CHECK(blkin_init_timestamp_annotation(&annotation, "e", NULL) == 0);
    CHECK(annotation.type == ANNOT_TIMESTAMP);
    CHECK_TEXT(annotation.val_str, "e");
}

/* An annotation with an endpoint of its own must be recorded too: in the original's last version
 * every macro failed here. */
TEST(test_record)
{
    struct blkin_annotation annotation;
    struct blkin_trace other = trace;
    struct blkin_endpoint bad = endpoint;

    blkin_init_timestamp_annotation(&annotation, "e", &endpoint);
    CHECK(blkin_record(&trace, &annotation) == 0);
    annotation.endpoint = NULL;
    CHECK(blkin_record(&trace, &annotation) == 0);
    CHECK(blkin_record(NULL, &annotation) == -EINVAL);
    CHECK(blkin_record(&trace, NULL) == -EINVAL);

    other.name = NULL;
    CHECK(blkin_record(&other, &annotation) == -EINVAL);
    other.name = "write";
    other.endpoint = NULL;
    CHECK(blkin_record(&other, &annotation) == -EINVAL);
    bad.ip = NULL;
    other.endpoint = &bad;
    CHECK(blkin_record(&other, &annotation) == -EINVAL);
    bad.ip = "10.0.0.1";
    bad.name = NULL;
    CHECK(blkin_record(&other, &annotation) == -EINVAL);

    annotation.val_str = NULL;
    CHECK(blkin_record(&trace, &annotation) == -EINVAL);
    annotation.type = (blkin_annotation_type)77;
    CHECK(blkin_record(&trace, &annotation) == -EINVAL);
}

TEST(test_info)
{
    struct blkin_trace_info info;
    struct blkin_trace other;

    CHECK(blkin_get_trace_info(NULL, &info) == -EINVAL);
    CHECK(blkin_get_trace_info(&trace, NULL) == -EINVAL);
    CHECK(blkin_get_trace_info(&trace, &info) == 0);
    CHECK(memcmp(&info, &trace.info, sizeof(info)) == 0);
    CHECK(blkin_set_trace_info(NULL, &info) == -EINVAL);
    CHECK(blkin_set_trace_info(&other, NULL) == -EINVAL);
    CHECK(blkin_set_trace_info(&other, &info) == 0);
    CHECK(memcmp(&info, &other.info, sizeof(info)) == 0);

    CHECK(blkin_set_trace_properties(NULL, &info, "n", &endpoint) == -EINVAL);
    CHECK(blkin_set_trace_properties(&other, NULL, "n", &endpoint) == -EINVAL);
    CHECK(blkin_set_trace_properties(&other, &info, NULL, &endpoint) == -EINVAL);
    CHECK(blkin_set_trace_properties(&other, &info, "n", NULL) == -EINVAL);
    CHECK(blkin_set_trace_properties(&other, &info, "n", &endpoint) == 0);
    CHECK(other.endpoint == &endpoint);
    CHECK_TEXT(other.name, "n");
}

TEST(test_packed)
{
    const struct blkin_trace_info info = {0x0102030405060708, -2, INT64_MIN};
    const unsigned char wire[24] = {1,    2,    3,    4,    5,    6, 7, 8, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xfe, 0x80, 0, 0, 0, 0,    0,    0,    0};
    struct blkin_trace_info_packed packed;
    struct blkin_trace_info back;

    CHECK(blkin_pack_trace_info(NULL, &packed) == -EINVAL);
    CHECK(blkin_pack_trace_info(&info, NULL) == -EINVAL);
    CHECK(blkin_unpack_trace_info(NULL, &back) == -EINVAL);
    CHECK(blkin_unpack_trace_info(&packed, NULL) == -EINVAL);
    CHECK(blkin_pack_trace_info(&info, &packed) == 0);
    CHECK(memcmp(&packed, wire, sizeof(wire)) == 0);
    CHECK(blkin_unpack_trace_info(&packed, &back) == 0);
    CHECK(memcmp(&back, &info, sizeof(info)) == 0);
}

/* ---- the macros: headers.c has those of blkin.h ---- */

static int evaluated;

static const char *count(const char *text)
{
    evaluated++;
    return text;
}

static void in_if_else(int condition)
{
    if (condition)
        BLKIN_TIMESTAMP(&trace, &endpoint, count("yes"));
    else
        BLKIN_KEYVAL_STRING(&trace, &endpoint, count("k"), count("no"));

    for (int i = 0; i < 3; i++)
        BLKIN_KEYVAL_INTEGER(&trace, NULL, count("i"), i);

    switch (condition) {
    case 0:
        BLKIN_TIMESTAMP(&trace, NULL, count("zero"));
        break;
    default:
        BLKIN_TIMESTAMP(&trace, NULL, count("other"));
    }
}

/* Each is one statement in every position, evaluates its arguments once, and takes NULL. */
TEST(test_macros)
{
    /* names that a macro might use inside */
    int annotation = 1, __annot = 2;

    in_if_else(1);
    CHECK(evaluated == 5);
    in_if_else(0);
    CHECK(evaluated == 11);
    BLKIN_KEYVAL_STRING(&trace, &endpoint, "k", NULL);
    BLKIN_KEYVAL_STRING(&trace, &endpoint, NULL, "v");
    BLKIN_KEYVAL_INTEGER(&trace, &endpoint, NULL, annotation);
    BLKIN_TIMESTAMP(&trace, &endpoint, NULL);
    BLKIN_TIMESTAMP(NULL, &endpoint, "e");
    BLKIN_KEYVAL_INTEGER(&trace, &endpoint, "k", __annot);
}

int main(void)
{
    CHECK(blkin_init() == 0);
    CHECK(blkin_init() == 0);
    check_run();
    return check_status();
}
