/*
 * Measures how fast the sink drains a spool into a collector that is far away, with the
 * default of spool-senders. The anchor is one sender.
 *
 *     bench-drain PORT      (of a null_server with a delay)
 *
 * Prints "NAME MEDIAN" in spans per second, of three runs. The spool is in TMPDIR.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "sample_span.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAIN_RUNS 3

static char folder[256], endpoint[64];

static void say_nothing(void *context, const char *message)
{
    (void)context;
    (void)message;
}

static struct exporter *open_exporter(const char *to, int64_t senders)
{
    struct error error;
    struct exporter *exporter = exporter_new(
        &(struct exporter_options){
            .transport = {.endpoint = to, .request_timeout_ms = 15000},
            .batch_spans = 1000,
            .batch_bytes = 1 << 20,
            .batch_timeout_ms = 5,
            .queue_bytes = 64 << 20,
            .on_full = ON_FULL_BLOCK,
            .retry_timeout_ms = 60000,
            .flush_timeout_ms = 5000,
            .spool = {.folder = folder,
                      .bytes = INT64_C(1) << 30,
                      .age_ms = INT64_C(86400000),
                      .senders = senders},
        },
        &(struct exporter_callbacks){.interrupted = never, .report = say_nothing}, &error);

    if (!exporter)
        errx(1, "%s", error.text);
    return exporter;
}

static void end(struct exporter *exporter)
{
    struct error error;

    if (!exporter_close(exporter, &error))
        errx(1, "%s", error.text);
    exporter_free(exporter);
}

/* Fills the spool: nobody listens at port 1. */
static void fill(uint64_t spans)
{
    struct exporter *exporter = open_exporter("http://127.0.0.1:1", 1);
    static struct span span;

    for (uint64_t i = 0; i < spans; i++) {
        sample_span(&span, i);
        exporter_add(exporter, &span);
    }
    exporter_flush(exporter);
    end(exporter);
}

/* Returns spans per second. */
static double drain(uint64_t spans, int64_t senders)
{
    struct exporter *exporter = open_exporter(endpoint, senders);
    const int64_t start_ms = clock_ms();
    struct exporter_counts counts;
    int64_t took_ms;

    exporter_flush(exporter);
    took_ms = clock_ms() - start_ms;
    counts = exporter_counts(exporter);
    if (counts.spool.outcome[OUTCOME_ACCEPTED] != spans)
        errx(1, "not all spans were delivered");
    end(exporter);
    return (double)spans * 1000 / (double)took_ms;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

static void measure(const char *name, uint64_t spans, int64_t senders)
{
    double rates[DRAIN_RUNS];

    for (unsigned i = 0; i < DRAIN_RUNS; i++) {
        fill(spans);
        rates[i] = drain(spans, senders);
    }
    qsort(rates, DRAIN_RUNS, sizeof(rates[0]), compare);
    printf("%s %.0f\n", name, rates[DRAIN_RUNS / 2]);
}

int main(int argc, char **argv)
{
    const char *temporary = getenv("TMPDIR");
    char lock[300];

    if (argc != 2)
        errx(1, "expected a port");
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%s", argv[1]);
    snprintf(folder, sizeof(folder), "%s/bench-drain.%d", temporary ? temporary : "/tmp",
             (int)getpid());
    measure("drain", 400000, 8);
    measure("drain_one", 50000, 1);
    snprintf(lock, sizeof(lock), "%s/lock", folder);
    return unlink(lock) == 0 && rmdir(folder) == 0 ? 0 : 1;
}
