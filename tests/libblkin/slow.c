/*
 * Spans whose steps are slow, for test-slow.sh ("slow steps"). Prints the ids of the slow steps, as
 * "TRACE-ID-HIGH TRACE-ID SPAN-ID NAME".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"
#include "waits.h"

#include <inttypes.h>

static void print_ids(const struct blkin_context *context, const char *name)
{
    printf("0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " %s\n", context->trace_id_high,
           context->trace_id, context->span_id, name);
}

#define SLOW_STEP_MS 3000 /* a fast step may take 2 s on a machine that stands still */

static void step(struct blkin_span *span, const char *name, long ms)
{
    struct blkin_context context;

    blkin_step_begin(span, name, BLKIN_INTERNAL);
    blkin_step_context(span, &context);
    if (ms)
        print_ids(&context, name);
    pause_us(ms * 1000);
    blkin_step_end(span);
}

/* The script's rules fit the steps, and not the spans. */
TEST(steps)
{
    struct blkin_context context;
    struct blkin_span span;

    blkin_init(); /* a program with libblkin.a loads its provider here */
    blkin_span_begin(&span, "in the log", BLKIN_SERVER, NULL);
    blkin_span_annotate(&span, "text");
    blkin_span_tag_string(&span, "string", "value");
    blkin_span_tag_int64(&span, "integer", 1);
    blkin_span_link(&span, blkin_span_context(&span));
    blkin_span_set_remote(&span, "peer", "10.0.0.2", 0);
    blkin_step_begin(&span, "fast", BLKIN_INTERNAL);
    step(&span, "inner fast", 0);
    blkin_step_end(&span);
    blkin_step_begin(&span, "around", BLKIN_INTERNAL); /* fits, too, but ends later */
    step(&span, "fsync", SLOW_STEP_MS);
    blkin_step_end(&span);
    blkin_span_set_start(&span, blkin_now() - 5000000000); /* before the steps */
    blkin_span_end(&span);

    blkin_span_begin(&span, "open at the end", BLKIN_SERVER, NULL);
    blkin_step_begin(&span, "hung", BLKIN_INTERNAL);
    blkin_step_context(&span, &context);
    print_ids(&context, "hung");
    pause_us(SLOW_STEP_MS * 1000);
    blkin_span_end(&span);

    blkin_span_begin(&span, "full log", BLKIN_SERVER, NULL);
    for (int i = 0; i < 60; i++)
        step(&span, "fast", 0);
    step(&span, "of its own event", SLOW_STEP_MS);
    blkin_span_end(&span);

    blkin_span_begin(&span, "all fast", BLKIN_SERVER, NULL);
    for (int i = 0; i < 5; i++)
        step(&span, "fast", 0);
    pause_us(SLOW_STEP_MS * 1000);
    blkin_span_end(&span);
}

int main(int argc, char **argv)
{
    return check_run_mode(argc > 1 ? argv[1] : NULL);
}
