/*
 * A program of today, for ever: abi/program-1.0 is this, compiled against the headers of 1.0 and
 * never again. It calls every function that 1.0 has for spans, and looks that the library stays
 * within the memory that 1.0 has given to a span.
 *
 * How it was made, on Debian 12, in this folder (not to be done again):
 *
 *     gcc -std=gnu11 -Os -s -Wall -Wextra -I../../../build/include -o program-1.0 program.c \
 *         -Wl,--build-id=none,-z,noseparate-code,-z,norelro,--hash-style=gnu \
 *         -fno-asynchronous-unwind-tables -fcf-protection=none -L../../../build/lib -lblkin
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <blkin/zipkin_c.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define CANARY UINT64_C(0x5ca1ab1e0ddba115)

static const struct blkin_endpoint osd = {"10.0.0.1", 6800, "osd"};
static const struct blkin_endpoint mon = {"10.0.0.2", 6789, "mon"};

/* As a program of 1.0 lays it out. */
static struct {
    uint64_t before;
    struct blkin_span root;
    uint64_t between;
    struct blkin_span child;
    uint64_t after;
} memory = {.before = CANARY, .between = CANARY, .after = CANARY};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void log_of_child(struct blkin_span *span)
{
    blkin_span_annotate(span, "annotated");
    blkin_span_log(span, BLKIN_WARNING, "warned");
    blkin_span_log_at(span, BLKIN_DEBUG, "at a time", now_ns());
    blkin_span_annotatef(span, "%d of %s", 1, "printf");
    BLKIN_TAG_STRING(span, "string", "value");
    blkin_span_tag_int64(span, "int64", -1);
    blkin_span_tag_uint64(span, "uint64", UINT64_MAX);
    blkin_span_tag_double(span, "double", 0.5);
    blkin_span_tag_bool(span, "bool", 1);
    blkin_span_error(span, "EIO");
    blkin_span_link(span, blkin_span_context(&memory.root));
    blkin_span_set_name(span, "renamed");
    blkin_span_set_remote(span, &mon);
    blkin_span_set_service(span, &mon);
    blkin_span_set_start(span, now_ns() - 1000000000);
}

/* To the end of what a span holds, and beyond. */
static void fill(struct blkin_span *span)
{
    static char text[240];

    memset(text, 'x', sizeof(text) - 1);
    blkin_span_set_service(span, &(struct blkin_endpoint){text, 1, text});
    blkin_span_set_name(span, text);
    for (int i = 0; i < 10; i++)
        blkin_span_tag_string(span, text, text);
}

static void original(void)
{
    struct blkin_trace trace;

    blkin_init_new_trace(&trace, "original", &osd);
    BLKIN_TIMESTAMP(&trace, NULL, SERVER_RECV);
    BLKIN_KEYVAL_STRING(&trace, NULL, "string", "value");
    BLKIN_KEYVAL_INTEGER(&trace, NULL, "integer", -1);
    BLKIN_TIMESTAMP(&trace, NULL, SERVER_SEND);
}

int main(void)
{
    char traceparent[BLKIN_TRACEPARENT_SIZE];
    struct blkin_context context = {0};
    struct blkin_span dropped;

    blkin_init();
    blkin_set_service(&osd);
    blkin_set_version("1.0");
    if (blkin_set_sampling("always") != 0 || blkin_version() / 10000 != BLKIN_VERSION_MAJOR)
        return 2;
    blkin_span_begin(&memory.root, "root", BLKIN_SERVER, NULL);
    if (blkin_span_is_recorded(&memory.root) != blkin_is_on())
        return 3;
    {
        BLKIN_CURRENT_SCOPE(&memory.root);

        blkin_span_begin(&memory.child, "child", BLKIN_CLIENT, blkin_current());
        log_of_child(&memory.child);
        blkin_span_end(&memory.child);
    }
    if (blkin_context_to_traceparent(blkin_span_context(&memory.root), traceparent) > 0 &&
        blkin_context_from_traceparent(&context, traceparent, strlen(traceparent)) != 0)
        return 4;
    blkin_span_begin_remote(&memory.child, "remote", BLKIN_CONSUMER, &context);
    fill(&memory.child);
    blkin_span_end_at(&memory.child, now_ns());
    blkin_span_begin(&dropped, "dropped", BLKIN_INTERNAL, &memory.root);
    blkin_span_drop(&dropped);
    blkin_heartbeat();
    blkin_span_end(&memory.root);
    {
        BLKIN_SCOPE(late, "late", BLKIN_PRODUCER, &memory.root);
    }
    original();
    if (memory.before != CANARY || memory.between != CANARY || memory.after != CANARY) {
        fputs("the library has written beyond a span\n", stderr);
        return 1;
    }
    return 0;
}
