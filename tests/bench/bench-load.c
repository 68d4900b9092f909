/*
 * A traced program for the sink's figures: makes spans, at a steady rate or as fast as it can.
 *
 *     bench-load span|original SPANS [SPANS_PER_SECOND]
 *
 * span: one blkin:span event with two annotations and two tags. original: the four events of the
 * original library (sr, a text, an integer, ss). Prints "produced SPANS SECONDS".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_NS 1000000 /* at a rate, the spans of a ms are made at once */

static const struct blkin_endpoint service = {"10.0.0.1", 6789, "osd.3"};

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

    blkin_init_new_trace(&trace, "pwrite", &service);
    BLKIN_TIMESTAMP(&trace, NULL, "sr");
    BLKIN_KEYVAL_STRING(&trace, NULL, "pool", "0123456789abcdef");
    BLKIN_KEYVAL_INTEGER(&trace, NULL, "offset", (int64_t)i);
    BLKIN_TIMESTAMP(&trace, NULL, "ss");
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    const struct timespec then = {ns / 1000000000, ns % 1000000000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) != 0)
        ;
}

/* Late ticks are made up for, so that the rate holds on a busy machine. */
static void produce(void (*make)(uint64_t), uint64_t spans, double per_second, int64_t start)
{
    uint64_t made = 0;

    for (int64_t tick = 1; made < spans; tick++) {
        uint64_t due = spans;

        if (per_second > 0) {
            due = (uint64_t)((double)tick * TICK_NS / 1e9 * per_second);
            sleep_until(start + tick * TICK_NS);
        }
        while (made < spans && made < due)
            make(made++);
    }
}

int main(int argc, char **argv)
{
    const uint64_t spans = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const double per_second = argc > 3 ? strtod(argv[3], NULL) : 0;
    int64_t start;

    if (spans == 0 || argc > 4 ||
        (strcmp(argv[1], "span") != 0 && strcmp(argv[1], "original") != 0)) {
        fprintf(stderr, "usage: bench-load span|original SPANS [SPANS_PER_SECOND]\n");
        return 2;
    }
    if (blkin_init() != 0) {
        fprintf(stderr, "bench-load: no tracing\n");
        return 1;
    }
    blkin_set_service(&service);
    start = now_ns();
    produce(strcmp(argv[1], "span") == 0 ? make_span : make_original, spans, per_second, start);
    printf("produced %llu %.3f\n", (unsigned long long)spans, (double)(now_ns() - start) / 1e9);
    return 0;
}
