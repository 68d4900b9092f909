/*
 * What `blkin rotate` tells of itself: as JSON for `blkin status`, and to Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_STATUS_H
#define BLKIN_TOOLS_ROTATE_STATUS_H

#include "keeper.h"
#include "tools/reader/host_child.h"
#include "totals.h"

struct rotate_status {
    const struct store *store;
    const struct rotate_totals *totals;
    int64_t dropped_ns; /* see struct room */
    const struct keep_report *report;
    bool has_looked;
    const char *current; /* PLACE/CHUNK that is being converted; "": none */
    struct counts counts;
    const struct host_child *host;
    const char *endpoint; /* as it was given */
};

/* NULL: out of memory. */
json_t *status_json(const struct rotate_status *status);
char *status_page(const struct rotate_status *status);

/* The account of all runs, in a line for the end. */
void status_print(const struct rotate_totals *totals);

#endif
