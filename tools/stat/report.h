/* The report of an interval, or of a whole file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_REPORT_H
#define BLKIN_TOOLS_STAT_REPORT_H

#include "tools/trace/summary.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAT_SERVICES_MAX 2

struct stat_options {
    int64_t interval_ms;
    unsigned order; /* enum operations_order */
    bool once;
    bool json;
    const char *service;     /* a glob; NULL: all */
    size_t width;            /* 0: of the terminal */
    const char *source;      /* NULL: the services of this host */
    const char *config;      /* the value of --config; NULL: not given */
    const char *runtime_dir; /* the value of --runtime-dir; NULL: not given */
};

struct report_traces {
    uint64_t complete;
    uint64_t early; /* closed early: their self times lack later children */
    uint64_t open;
};

struct report_service {
    const char *name;
    char only[64];   /* the spans that it counts: "slow and failed requests"; empty: all */
    json_t *account; /* its counters; NULL: not running */
};

struct report {
    bool is_live;
    double seconds; /* the period */
    uint64_t spans;
    size_t sources; /* processes that count spans */
    struct report_traces traces;
    const struct statistics *statistics;
    struct report_service services[STAT_SERVICES_MAX];
};

/* Returns the rate per second; 0: unknown period. */
static inline double report_rate(const struct report *report, uint64_t count)
{
    return report->seconds > 0 ? (double)count / report->seconds : 0;
}

/* Write to the standard output. Return false when out of memory. */
bool print_table(const struct report *report, const struct stat_options *options);
bool print_json(const struct report *report, const struct stat_options *options);

#endif
