/*
 * Statistics of traces: a row for each service and span name, an edge for each service that calls
 * another one. All of it is sums and histograms, so that what two have counted is added up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_STATISTICS_H
#define BLKIN_ANALYSIS_STATISTICS_H

#include "histogram.h"
#include "model.h"
#include "names.h"

/* With more of either, new ones are counted in one for all others (NAMES_OTHER twice). */
#ifndef STATISTICS_ROWS_MAX /* fuzzers set fewer */
#define STATISTICS_ROWS_MAX  4096
#define STATISTICS_EDGES_MAX 4096
#endif

/* Times in ns. */
struct statistics_row {
    uint32_t service;
    uint32_t name;
    uint32_t index; /* see statistics_row() */
    uint64_t spans; /* of this period; statistics_begin_period() sets these to 0 */
    uint64_t errors;
    uint64_t ever;             /* spans since the row is there */
    struct histogram duration; /* of those whose duration is known; as is self */
    struct histogram self;
    /*
     * Durations of the periods before, for what is usual: of the last 2^20 spans or half as many.
     */
    struct histogram past;
};

struct statistics_edge {
    uint32_t caller; /* services */
    uint32_t callee;
    uint64_t calls;
    uint64_t errors;
    struct histogram duration; /* see calls.h */
};

struct statistics;

/* Returns NULL when out of memory. The names are the caller's, and live longer. */
struct statistics *statistics_new(struct names *names);
void statistics_free(struct statistics *statistics);

/*
 * Counts the span, and its duration: in its row, or in one that was found before. Out of memory:
 * these return false. Whoever has the trace adds self times and calls: calls.h.
 */
bool statistics_add_span(struct statistics *statistics, const struct trace_span *span);
bool statistics_count(struct statistics_row *row, const struct trace_span *span);

/* Returns NULL when out of memory. For who merges what others have counted. */
struct statistics_row *statistics_row_of(struct statistics *statistics, uint32_t service,
                                         uint32_t name);
struct statistics_edge *statistics_edge_of(struct statistics *statistics, uint32_t caller,
                                           uint32_t callee);

/* The row that is there, be it the one for others; NULL: none. */
const struct statistics_row *statistics_find_row(const struct statistics *statistics,
                                                 uint32_t service, uint32_t name);

/*
 * Counts and histograms to 0; rows, edges and `ever` stay. Durations become those of the past. Out
 * of memory: some of the past is missing.
 */
void statistics_begin_period(struct statistics *statistics);

/* A number that changes whenever the past does. */
uint64_t statistics_period(const struct statistics *statistics);

/* The memory of all histograms. */
size_t statistics_bytes(const struct statistics *statistics);

/* Without rows and edges from now on. */
void statistics_clear(struct statistics *statistics);

/* In no order, but that of their coming. */
size_t statistics_rows(const struct statistics *statistics);
const struct statistics_row *statistics_row(const struct statistics *statistics, size_t i);
size_t statistics_edges(const struct statistics *statistics);
const struct statistics_edge *statistics_edge(const struct statistics *statistics, size_t i);
const struct names *statistics_names(const struct statistics *statistics);

static inline bool statistics_row_is_other(const struct statistics_row *row)
{
    return row->service == NAMES_OTHER && row->name == NAMES_OTHER;
}

static inline bool statistics_edge_is_other(const struct statistics_edge *edge)
{
    return edge->caller == NAMES_OTHER && edge->callee == NAMES_OTHER;
}

#endif
