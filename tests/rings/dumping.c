/*
 * For test-dump.sh: a program that records events of all kinds when it has the agent's rings, and
 * LTTng records metrics. Then it prints "recorded", and keeps the rings until it is killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/blkin.h"
#include "libblkin/metric/metric.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/zipkin_c.h"
#include "waits.h"

#include <unistd.h>

#define DUMPING_TIMES 20

static void record_span(int number)
{
    struct blkin_span failed;
    BLKIN_SCOPE(span, "request", BLKIN_SERVER, NULL);

    blkin_span_set_service(&span, "osd.12", "10.0.0.1", 6789);
    blkin_span_set_remote(&span, "client", "10.0.0.2", 80);
    blkin_span_annotate(&span, "queued");
    blkin_span_tag_int64(&span, "number", number);
    blkin_span_tag_string(&span, "text", "a \"value\" of \xff bytes");
    blkin_span_tag_double(&span, "share", 0.25);
    for (int i = 0; i < number; i++) { /* the log of the span has no room for many of them */
        BLKIN_STEP_SCOPE(&span, "step", BLKIN_INTERNAL);
        blkin_span_log(&span, BLKIN_WARNING, "in a step, of which there are many");
    }
    blkin_span_begin(&failed, "failed", BLKIN_CLIENT, &span);
    blkin_span_error(&failed, "no");
    blkin_span_end(&failed);
}

static void record_original(int number)
{
    static const struct blkin_endpoint endpoint = {
        .ip = "10.0.0.1", .port = (int16_t)50000, .name = "osd"};
    struct blkin_trace trace, child;
    char text[RING_TEXT_MAX + 2] = "";

    (void)memset(text, 'x', RING_TEXT_MAX + (number % 10 == 0)); /* every tenth text is cut */
    blkin_init_new_trace(&trace, "original", &endpoint);
    BLKIN_TIMESTAMP(&trace, NULL, "sr");
    blkin_init_child(&child, &trace, NULL, "child");
    BLKIN_KEYVAL_STRING(&child, NULL, "key", text);
    BLKIN_KEYVAL_INTEGER(&child, NULL, "number", number);
    BLKIN_TIMESTAMP(&child, NULL, "cs");
    BLKIN_TIMESTAMP(&trace, NULL, "ss");
}

/* Returns the number of bytes in the rings; 0: no rings yet. */
static uint64_t written(void)
{
    const struct ring_map *map = ring_map();
    uint64_t bytes = 0;

    for (uint64_t i = 0; map && i < map->parts[RING_EVENTS].cpus; i++)
        bytes += __atomic_load_n(&map->parts[RING_EVENTS].heads[i].committed, __ATOMIC_RELAXED);
    return bytes;
}

int main(void)
{
    const uint64_t values[] = {1, 2};

    blkin_init();
    CHECK(blkin_set_slow("failed>1ns") == 0);
    /* blkin_heartbeat() records the first event: blkin:process */
    WORK_UNTIL(blkin_metric_is_on() && written() > 0, blkin_heartbeat());
    for (int i = 0; i < DUMPING_TIMES; i++) {
        record_span(i);
        record_original(i);
        blkin_metric_record(&(struct blkin_metric){.group = "cpu",
                                                   .instance = "",
                                                   .names = "busy:ns:c idle:ns:c",
                                                   .period_ms = 1000,
                                                   .monotonic = (uint64_t)i,
                                                   .values = values,
                                                   .count = 2});
    }
    puts(check_failures ? "failed" : "recorded");
    (void)fflush(stdout);
    return pause();
}
