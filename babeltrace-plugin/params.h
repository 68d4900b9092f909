/*
 * The component's parameters: one table says what there is, of what type, in what range.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PARAMS_H
#define BLKIN_PARAMS_H

#include "core/closing.h"
#include "error.h"
#include "output/exporter.h"

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stdint.h>

/* Texts live as long as the parameter map. */
struct params {
    int64_t idle_timeout_ms;
    int64_t end_timeout_ms;
    int64_t open_timeout_ms;
    int64_t max_open_spans;
    int64_t max_open_bytes;
    const char *checkpoint;
    const char *checkpoint_trace;
    bool checkpoint_flush;
    int64_t checkpoint_until; /* s since 1970; 0: not given */
    const char *stats_file;
    int64_t stats_period_ms;
    const char *prometheus_listen;
    struct exporter_options exporter;
    bool clock_correction;
    struct closing closing; /* empty: not given */
};

/* Fills params from the map, defaults included. Returns false, with error set, naming the culprit.
 */
bool params_read(struct params *params, const bt_value *map, struct error *error);

#endif
