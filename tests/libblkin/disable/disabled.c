/*
 * A program that is built with -DBLKIN_DISABLE and without the library, for test-headers.sh:
 * nothing is traced, and contexts from other processes are passed on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include "../../check.h"

static const struct blkin_endpoint endpoint = {"10.0.0.1", 6789, "osd.1"};

static void test_original_api(void)
{
    const struct blkin_trace_info received = {-2, 5, 3};
    struct blkin_trace_info_packed packed;
    struct blkin_trace_info info;
    struct blkin_trace root, child;
    const unsigned char wire[] = {255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 0,
                                  0,   0,   0,   5,   0,   0,   0,   0,   0, 0, 0, 3};

    CHECK(blkin_init() == 0);
    blkin_init_thread();
    CHECK(blkin_init_new_trace(&root, "root", &endpoint) == 0);
    CHECK(root.info.trace_id == 0);
    CHECK(blkin_init_new_trace(NULL, "root", &endpoint) == -EINVAL);
    CHECK(blkin_init_child(&child, &root, NULL, "child") == 0);
    CHECK(child.info.trace_id == 0 && child.endpoint == &endpoint);
    CHECK(blkin_init_child_info(&child, &received, &endpoint, "child") == 0);
    CHECK(blkin_get_trace_info(&child, &info) == 0);
    CHECK(blkin_pack_trace_info(&info, &packed) == 0);
    CHECK(memcmp(&packed, wire, sizeof(wire)) == 0);
    CHECK(blkin_unpack_trace_info(&packed, &info) == 0);
    CHECK(memcmp(&info, &received, sizeof(info)) == 0);
    BLKIN_TIMESTAMP(&root, NULL, SERVER_RECV);
    BLKIN_KEYVAL_STRING(&root, &endpoint, "key", "value");
    BLKIN_KEYVAL_INTEGER(&root, &endpoint, "key", 1);
}

static void test_contexts(void)
{
    static const char parent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    struct blkin_context context = {0};
    struct blkin_span span;
    char text[BLKIN_TRACEPARENT_SIZE] = "unchanged";

    CHECK(blkin_context_from_traceparent(&context, parent, sizeof(parent) - 1) == -EINVAL);
    CHECK(blkin_context_from_environment(&context) == -ENOENT);
    CHECK(!blkin_context_has_ids(&context));
    blkin_span_begin_remote(&span, "root", BLKIN_SERVER, &context);
    CHECK(blkin_context_to_traceparent(blkin_span_context(&span), text) == -EINVAL);
    CHECK_TEXT(text, "unchanged");
    context.trace_id = context.span_id = 7; /* from the program's own protocol */
    blkin_span_begin_remote(&span, "root", BLKIN_SERVER, &context);
    CHECK(blkin_span_context(&span)->trace_id == 7);
    blkin_span_begin(&span, "root", BLKIN_SERVER, NULL);
    CHECK(blkin_span_context(&span)->trace_id == 0);
}

/* No step is recorded, and the context of a step is that of its span. */
static void test_steps(void)
{
    const struct blkin_context received = {.trace_id = 7, .span_id = 8, .parent_span_id = 9};
    struct blkin_context context;
    struct blkin_span span;

    blkin_span_begin_remote(&span, "root", BLKIN_SERVER, &received);
    blkin_step_begin(&span, "step", BLKIN_CLIENT);
    memset(&context, 0xff, sizeof(context));
    blkin_step_context(&span, &context);
    CHECK(context.trace_id == 7 && context.span_id == 8 && context.parent_span_id == 9);
    {
        BLKIN_STEP_SCOPE(&span, "scope", BLKIN_INTERNAL);
        BLKIN_STEP_SCOPE(NULL, "scope", BLKIN_INTERNAL);
    }
    blkin_step_end(&span);
    blkin_span_begin(&span, "root", BLKIN_SERVER, NULL);
    blkin_step_context(&span, &context);
    CHECK(!blkin_context_has_ids(&context));
}

int main(void)
{
    test_original_api();
    test_contexts();
    test_steps();
    return check_status();
}
