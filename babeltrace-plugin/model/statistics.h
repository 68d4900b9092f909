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

/* With more of a kind, new ones are counted in one for all others (NAMES_OTHER twice). */
#ifndef STATISTICS_ROWS_MAX /* fuzzers set fewer */
#define STATISTICS_ROWS_MAX 4096
#endif

/* An edge is a row of two services, without self times, past and `ever`. */
enum statistics_kind { STATISTICS_ROWS, STATISTICS_EDGES, STATISTICS_KINDS };

/* Times in ns. */
struct statistics_row {
    union {
        uint32_t service, caller;
    };
    union {
        uint32_t name, callee; /* of an edge a service, too */
    };
    uint32_t index; /* see statistics_at() */
    union {
        uint64_t spans, calls; /* of this period; statistics_begin_period() sets these to 0 */
    };
    uint64_t errors;
    uint64_t ever; /* spans since the row is there */
    struct histogram
        duration; /* of those whose duration is known, as is self; tools/trace/calls.h */
    struct histogram self;
    /*
     * Durations of the periods before, for what is usual: of the last 2^20 spans or half as many.
     */
    struct histogram past;
};

struct statistics;

/* Returns NULL when out of memory. The names are the caller's, and live longer. */
struct statistics *statistics_new(struct names *names);
void statistics_free(struct statistics *statistics);

/*
 * Counts the span, and its duration: in its row, or in one that was found before. Out of memory:
 * these return false. Whoever has the trace adds self times and calls: tools/trace/calls.h.
 */
bool statistics_add_span(struct statistics *statistics, const struct trace_span *span);
bool statistics_count(struct statistics_row *row, const struct trace_span *span);

/* Returns NULL when out of memory. For who merges what others have counted. */
struct statistics_row *statistics_add(struct statistics *statistics, enum statistics_kind kind,
                                      uint32_t first, uint32_t second);

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

/* Without rows and edges from now on. */
void statistics_clear(struct statistics *statistics);

/* In no order, but that of their coming. */
size_t statistics_size(const struct statistics *statistics, enum statistics_kind kind);
const struct statistics_row *statistics_at(const struct statistics *statistics,
                                           enum statistics_kind kind, size_t i);
const struct names *statistics_names(const struct statistics *statistics);

static inline bool statistics_is_other(const struct statistics_row *row)
{
    return row->service == NAMES_OTHER && row->name == NAMES_OTHER;
}

#endif
