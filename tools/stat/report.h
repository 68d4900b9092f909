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

#define SERVICES_MAX 2

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

struct report_service {
    const char *name;
    char only[64];   /* the spans that it has: "slow and failed requests"; empty: all */
    json_t *account; /* its counters; NULL: it does not run */
};

struct report {
    bool is_live;
    double seconds; /* that the spans are of */
    uint64_t spans;
    size_t sources; /* processes that count spans */
    struct report_traces traces;
    const struct statistics *statistics;
    struct report_service services[SERVICES_MAX];
};

/* In a second; 0 where the time is not known. */
static inline double report_rate(const struct report *report, uint64_t count)
{
    return report->seconds > 0 ? (double)count / report->seconds : 0;
}

/* These write to the standard output. Out of memory: they return false. */
bool print_table(const struct report *report, const struct options *options);
bool print_json(const struct report *report, const struct options *options);

/*
 * Of the services whose sockets are in a folder. Returns the exit status; reports by itself.
 */
int watch_services(const struct options *options, const char *folder);

#endif
