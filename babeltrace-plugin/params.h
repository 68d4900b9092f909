/*
 * The component's parameters: one table says what there is, of what type, in what range.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PARAMS_H
#define BLKIN_PARAMS_H

#include "core/closing.h"
#include "error.h"

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stdint.h>

struct params {
    const char *endpoint; /* lives as long as the parameter map */
    int64_t idle_timeout_ms;
    int64_t end_timeout_ms;
    int64_t open_timeout_ms;
    int64_t max_open_spans;
    int64_t max_open_bytes;
    int64_t batch_spans;
    int64_t batch_timeout_ms;
    int64_t retry_timeout_ms;
    bool clock_correction;
    struct closing closing; /* empty: not given */
};

/* Fills params from the map, defaults included. Returns false, with error set, naming the culprit.
 */
bool params_read(struct params *params, const bt_value *map, struct error *error);

#endif
