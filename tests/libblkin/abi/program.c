/*
 * A program that stays the same: abi/program-0.9 is this file, compiled against the headers of 0.9,
 * and never again until 1.0. It calls most functions that 0.9 has for spans, and checks that the
 * library stays within the memory that 0.9 gives to a span.
 *
 * Made on Debian 12, in this folder (not to be repeated):
 *
 *     gcc -std=gnu11 -Os -s -Wall -Wextra -I../../../build/include -o program-0.9 program.c \
 *         -Wl,--build-id=none,-z,noseparate-code,-z,norelro,--hash-style=gnu \
 *         -fno-asynchronous-unwind-tables -fcf-protection=none -L../../../build/lib -lblkin
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <blkin/zipkin_c.h>

#include <stdio.h>
#include <string.h>

#define ABI_CANARY UINT64_C(0x5ca1ab1e0ddba115)

static const struct blkin_endpoint osd = {"10.0.0.1", 6800, "osd"};

/* Spans between canaries, laid out as in a program of 0.9. */
static struct {
    uint64_t before;
    struct blkin_span root;
    uint64_t between;
    struct blkin_span child;
    uint64_t after;
    BLKIN_SPAN_ROOM(256) room;
    uint64_t behind;
} memory = {.before = ABI_CANARY, .between = ABI_CANARY, .after = ABI_CANARY, .behind = ABI_CANARY};

static void log_of_child(struct blkin_span *span)
{
    blkin_span_annotate(span, "annotated");
    blkin_span_log(span, BLKIN_WARNING, "warned");
    blkin_span_log_at(span, BLKIN_DEBUG, "at a time", blkin_now());
    blkin_span_annotatef(span, "%d of %s", 1, "printf");
    BLKIN_TAG_STRING(span, "string", "value");
    blkin_span_tag_int64(span, "int64", -1);
    blkin_span_tag_uint64(span, "uint64", UINT64_MAX);
    blkin_span_tag_double(span, "double", 0.5);
    blkin_span_tag_bool(span, "bool", 1);
    blkin_span_error(span, "EIO");
    blkin_span_link(span, blkin_span_context(&memory.root));
    blkin_span_set_name(span, "renamed");
    blkin_span_set_remote(span, "mon", "10.0.0.2", 6789);
    blkin_span_set_service(span, "mon", "10.0.0.2", 6789);
    blkin_span_set_start(span, blkin_now() - 1000000000);
}

/* Fills a room to its end, and beyond. */
static void small(void)
{
    struct blkin_span *span = blkin_span_begin_in(&memory.room, sizeof(memory.room), "small",
                                                  BLKIN_INTERNAL, &memory.root);

    blkin_step_begin(span, "step", BLKIN_INTERNAL);
    for (int i = 0; i < 20; i++)
        blkin_span_annotate(span, "text");
    blkin_step_end(span);
    blkin_span_end(span);
}

/* Records a completed span with one tag. */
static int completed(void)
{
    struct __attribute__((packed)) {
        uint8_t version, kind;
        uint16_t name_length;
        uint32_t flags;
        uint64_t ids[4], times[2];
        char name[9];
        uint8_t type, key_length;
        uint16_t value_length;
        char key_and_value[4];
    } buffer = {1,
                0,
                9,
                0,
                {0},
                {0},
                {'c', 'o', 'm', 'p', 'l', 'e', 't', 'e', 'd'},
                's',
                1,
                3,
                {'k', 'v', 'a', 'l'}};

    buffer.ids[0] = blkin_span_context(&memory.root)->trace_id_high;
    buffer.ids[1] = blkin_span_context(&memory.root)->trace_id;
    buffer.ids[3] = blkin_span_context(&memory.root)->span_id;
    buffer.flags = blkin_span_context(&memory.root)->flags;
    buffer.times[1] = blkin_now();
    buffer.times[0] = buffer.times[1] - 5000000;
    return blkin_record_span(&buffer, sizeof(buffer));
}

/* Fills a span to its end, and beyond. */
static void fill(struct blkin_span *span)
{
    static char text[240];

    memset(text, 'x', sizeof(text) - 1);
    blkin_span_set_service(span, text, text, 1);
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
    blkin_set_service("osd", "10.0.0.1", 6800);
    blkin_set_version("0.9");
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
    blkin_span_end_at(&memory.child, blkin_now());
    blkin_span_begin(&dropped, "dropped", BLKIN_INTERNAL, &memory.root);
    blkin_span_drop(&dropped);
    blkin_heartbeat();
    blkin_span_end(&memory.root);
    {
        BLKIN_SCOPE(late, "late", BLKIN_PRODUCER, &memory.root);
    }
    small();
    if (completed() != 0)
        return 5;
    original();
    if (memory.before != ABI_CANARY || memory.between != ABI_CANARY || memory.after != ABI_CANARY ||
        memory.behind != ABI_CANARY) {
        fputs("the library has written beyond a span\n", stderr);
        return 1;
    }
    return 0;
}
