/*
 * The component's parameters: one table has their names, types and ranges.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PARAMS_H
#define BLKIN_PARAMS_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/spans/assembler.h"

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB    INT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)
#define DAY_MS INT64_C(86400000)

/* The texts belong to the values that were set. */
struct params {
    uint64_t given; /* a bit for each given row of the table; other rows have defaults */
    int64_t idle_timeout_ms;
    int64_t end_timeout_ms;
    int64_t open_timeout_ms;
    int64_t max_open_spans;
    int64_t max_open_bytes;
    int64_t from_time;   /* ns since 1970; 0: from the begin of the trace */
    int64_t from_events; /* the number of events at from_time that are skipped, too */
    const char *sent_file;
    const char *rules;
    const char *rules_report;
    const char *tail_sampling;
    int64_t tail_wait_ms;
    int64_t tail_max_bytes;
    int64_t join_wait_ms;
    int64_t join_max_bytes;
    int64_t join_skew_us;
    int64_t host_min_ms; /* -1: no span gets tags of its host */
    const char *stats_file;
    int64_t stats_period_ms;
    const char *prometheus_listen;
    const char *statistics_file; /* see pipeline.h */
    struct exporter_options exporter;
    bool clock_correction;
    struct closing closing; /* empty: not given */
};

/* Fills params from the map, with defaults; the texts belong to the map. Returns false with error
 * set: the message names the wrong parameter. */
bool params_read(struct params *params, const bt_value *map, struct error *error);

/* Checks the combination of parameters. Returns false with error set. */
bool params_fit(const struct params *params, struct error *error);

/* ---- the table, also for other sources of values and keys */

enum param_type { PARAM_TEXT, PARAM_INTEGER, PARAM_CHOICE, PARAM_BOOLEAN, PARAM_CLOSING };

struct param_rule {
    const char *name;
    enum param_type type;
    size_t offset; /* in struct params */
    int64_t min;
    int64_t max;                /* of a text: bytes; 0: any number */
    int64_t default_integer;    /* of integers, choices and booleans */
    const char *default_text;   /* NULL: not given */
    const char *const *choices; /* in the order of their enum, ends in NULL */
};

const struct param_rule *params_table(size_t *count);

/* By type: an integer (0 or 1 for a boolean), or a text. */
struct param_value {
    const char *text;
    int64_t integer;
};

/* Called in this order: params_begin() sets the defaults, params_set() one value. params_end() sets
 * the defaults that depend on other parameters. */
void params_begin(struct params *params);
bool params_set(struct params *params, const struct param_rule *rule,
                const struct param_value *value, struct error *error); /* false: with error set */
void params_end(struct params *params);

/* Checks the value by the rule. Returns false with error set. */
bool param_check(const struct param_rule *rule, const struct param_value *value,
                 struct error *error);

#endif
