/* Shared by the sources of `blkin report`. All texts of traces pass through markup_put().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REPORT_PARTS_H
#define BLKIN_TOOLS_REPORT_PARTS_H

#include "babeltrace-plugin/model/model.h"
#include "tools/graph/graph.h"
#include "tools/trace/summary.h"

#include <stdio.h>

/* The data and the state of a page. */
struct report_page {
    FILE *file;
    const char *source;
    int64_t start_ns; /* of the first span; 0: unknown */
    int64_t end_ns;
    const struct statistics *statistics;
    struct landscape landscape;
    struct histogram traces; /* durations of whole traces */
    size_t details_left;     /* tags and annotations that may still be shown */
    size_t details_missing;
};

#define REPORT_NAME_COLUMNS 80

/* Writes the name of a service or span, or a placeholder for an unknown name. */
void put_name(const struct report_page *page, uint32_t name);

/* Write the histograms, and the timeline of one trace. Return false when out of memory. */
bool put_latencies(const struct report_page *page);
bool put_timeline(struct report_page *page, const char *trace_id, const struct trace_model *linked,
                  size_t max_spans, bool is_open);

#endif
