/*
 * What is shown: of an interval, or of all that a file has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_REPORT_H
#define BLKIN_TOOLS_STAT_REPORT_H

#include "tools/trace/operations.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVICES_MAX 1

struct options {
    int64_t interval_ms;
    unsigned order; /* enum operations_order */
    bool once;
    bool json;
    const char *service; /* a glob; NULL: all */
    size_t width;        /* 0: the terminal's */
    const char *source;  /* NULL: the services that run here */
    const char *config;  /* the flags "--runtime-dir=..." and "--config=..."; NULL: not given */
    const char *runtime_dir;
};

struct report_traces {
    uint64_t complete;
    uint64_t early; /* made room: a child that came later is missing in their self times */
    uint64_t open;
};

struct report {
    bool is_live;
    double seconds;   /* that the spans are of */
    uint64_t spans;   /* that were seen */
    uint64_t passed;  /* that the sinks had */
    uint64_t dropped; /* of these: the taps' readers were too slow */
    uint32_t share;   /* 1/share of the traces is asked for */
    size_t taps;      /* sinks that are read */
    struct report_traces traces;
    const struct statistics *statistics;
    const char *account_names[SERVICES_MAX]; /* of the services that run */
    const json_t *accounts[SERVICES_MAX];    /* their counters; NULL: not known */
};

/* In a second; 0 where the time is not known. If not all that passed was seen, an estimate. */
static inline double report_rate(const struct report *report, uint64_t count)
{
    const double scale = report->spans && report->passed > report->spans
                             ? (double)report->passed / (double)report->spans
                             : 1;

    return report->seconds > 0 ? (double)count * scale / report->seconds : 0;
}

/* These write to the standard output. Out of memory: they return false. */
bool print_table(const struct report *report, const struct options *options);
bool print_json(const struct report *report, const struct options *options);

/*
 * Of one sink's tap, or of all those of the services whose sockets are in a folder. Returns the
 * exit status; reports by itself.
 */
int watch_tap(const struct options *options, const char *path);
int watch_services(const struct options *options, const char *folder);

#endif
