/*
 * A traced program for the sink's figures. It makes spans at a steady rate or as fast as possible.
 *
 *     bench-load span|original COUNT [PER_SECOND]
 *
 * span: one blkin:span event with two annotations and two tags. original: the four events of the
 * original library (sr, a text, an integer, ss). With BENCH_AWAIT_RINGS in the environment, the
 * program first waits for the agent's rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"
#include "tests/waits.h"

#include <blkin.h>
#include <zipkin_c.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_TICK_NS 1000000 /* the program makes the spans of one ms at once */

static const struct blkin_endpoint osd = {"10.0.0.1", 6789, "osd.3"};

static void make_span(uint64_t i)
{
    struct blkin_span span;

    blkin_span_begin(&span, "pwrite", BLKIN_SERVER, NULL);
    blkin_span_annotate(&span, "queued");
    blkin_span_tag_string(&span, "pool", "0123456789abcdef");
    blkin_span_tag_int64(&span, "offset", (int64_t)i);
    blkin_span_annotate(&span, "journaled");
    blkin_span_end(&span);
}

static void make_original(uint64_t i)
{
    struct blkin_trace trace;

    blkin_init_new_trace(&trace, "pwrite", &osd);
    BLKIN_TIMESTAMP(&trace, NULL, "sr");
    BLKIN_KEYVAL_STRING(&trace, NULL, "pool", "0123456789abcdef");
    BLKIN_KEYVAL_INTEGER(&trace, NULL, "offset", (int64_t)i);
    BLKIN_TIMESTAMP(&trace, NULL, "ss");
}

/* Makes up for late ticks, so that the rate holds on a busy machine. */
static void produce(void (*make)(uint64_t), uint64_t count, double per_second)
{
    const int64_t start = (int64_t)now_ns();
    uint64_t made = 0;

    for (int64_t tick = 1; made < count; tick++) {
        uint64_t due = count;

        if (per_second > 0) {
            due = (uint64_t)((double)tick * BENCH_TICK_NS / 1e9 * per_second);
            sleep_until(start + tick * BENCH_TICK_NS);
        }
        while (made < count && made < due)
            make(made++);
    }
}

/* Waits for the agent's rings, which the program gets a moment after its start. One span more than
 * COUNT is in the rings: the last span of this wait. */
static bool await_rings(void)
{
    const uint64_t until = now_ns() + UINT64_C(10) * 1000000000;
    bool is_recorded = false;

    while (!is_recorded && now_ns() < until) {
        struct blkin_span span;

        blkin_span_begin(&span, "the first", BLKIN_SERVER, NULL);
        is_recorded = blkin_span_is_recorded(&span);
        blkin_span_end(&span);
        sleep_until((int64_t)now_ns() + 10 * BENCH_TICK_NS);
    }
    return is_recorded;
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const double per_second = argc > 3 ? strtod(argv[3], NULL) : 0;
    const bool is_original = argc > 1 && strcmp(argv[1], "original") == 0;

    if (count == 0 || argc > 4 || (!is_original && strcmp(argv[1], "span") != 0)) {
        fprintf(stderr, "usage: bench-load span|original COUNT [PER_SECOND]\n");
        return 2;
    }
    if (blkin_init() != 0) {
        fprintf(stderr, "bench-load: no tracing\n");
        return 1;
    }
    blkin_set_service(osd.name, osd.ip, (uint16_t)osd.port);
    if (getenv("BENCH_AWAIT_RINGS") && !await_rings()) {
        fprintf(stderr, "bench-load: nothing records at BLKIN_RINGS\n");
        return 1;
    }
    produce(is_original ? make_original : make_span, count, per_second);
    return 0;
}
