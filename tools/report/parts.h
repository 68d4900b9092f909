/*
 * The page and its parts. All texts of traces are foreign: they pass through markup_put().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REPORT_PARTS_H
#define BLKIN_TOOLS_REPORT_PARTS_H

#include "babeltrace-plugin/model/model.h"
#include "tools/graph/graph.h"
#include "tools/trace/operations.h"
#include "tools/trace/summary.h"

#include <jansson.h>
#include <stdio.h>

/* Everything that a page shows a part of. */
struct page {
    FILE *file;
    const char *source;
    int64_t start_ns; /* of the first span; 0: not known */
    int64_t end_ns;
    const struct statistics *statistics;
    struct landscape landscape;
    struct histogram traces; /* how long whole traces are */
    size_t details_left;     /* how many tags and annotations may still be shown */
    size_t details_missing;
};

#define NAME_COLUMNS 80

/* The name of a service or a span, and what stands for one that is not known. */
void put_name(const struct page *page, uint32_t name);

/* Begins a table, and a cell in it; a narrow screen shows the cell's title beside it. */
void put_table(const struct page *page, const char *kind, const char *const *titles, size_t count);
void put_cell(const struct page *page, const char *title, struct figure figure, bool is_bad);

/* Out of memory: these return false. The first one is the whole page. */
bool page_put(FILE *file, const char *source, struct summary *summary, size_t max_traces);
bool put_operations(const struct page *page);
bool put_latencies(const struct page *page);
bool put_timeline(struct page *page, const char *trace_id, const struct trace_model *linked,
                  size_t max_spans, bool is_open);

#endif
