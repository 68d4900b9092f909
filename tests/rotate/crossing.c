/*
 * Spans that last longer than a chunk: COUNT streamed ones, and COUNT of the original's events,
 * each with an annotation at its begin, after every STEP_MS, and at its end.
 *
 *     crossing COUNT STEPS STEP_MS
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <blkin/zipkin_c.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT_MAX 1000

static struct blkin_span spans[COUNT_MAX];
static struct blkin_trace traces[COUNT_MAX];

static void wait_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

int main(int argc, char *argv[])
{
    static struct blkin_endpoint endpoint = {"10.0.0.1", 6789, "crossing"};
    const int count = argc == 4 ? atoi(argv[1]) : 0, steps = argc == 4 ? atoi(argv[2]) : 0;
    const long step_ms = argc == 4 ? atol(argv[3]) : 0;

    if (count < 1 || count > COUNT_MAX || blkin_init() != 0)
        return 2;
    blkin_set_service(endpoint.name, endpoint.ip, (uint16_t)endpoint.port);
    for (int i = 0; i < count; i++) {
        blkin_span_begin(&spans[i], "streamed", BLKIN_SERVER, NULL);
        blkin_init_new_trace(&traces[i], "original", &endpoint);
        BLKIN_TIMESTAMP(&traces[i], NULL, "sr");
    }
    for (int step = 0; step < steps; step++) {
        char text[32];

        wait_ms(step_ms);
        snprintf(text, sizeof(text), "step %d", step);
        for (int i = 0; i < count; i++) {
            blkin_span_annotate(&spans[i], text);
            BLKIN_TIMESTAMP(&traces[i], NULL, text);
        }
    }
    for (int i = 0; i < count; i++) {
        blkin_span_end(&spans[i]);
        BLKIN_TIMESTAMP(&traces[i], NULL, "ss");
    }
    return 0;
}
