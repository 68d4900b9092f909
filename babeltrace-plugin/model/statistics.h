/*
 * Statistics of traces: a row for each service and span name, an edge for each call between two
 * services. All values are sums and histograms, so the statistics of two workers can be added.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MODEL_STATISTICS_H
#define BLKIN_MODEL_STATISTICS_H

#include "histogram.h"
#include "model.h"

/* The most rows of a kind. More pairs share one row (NAMES_OTHER twice). */
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
        uint32_t name, callee; /* of an edge: the called service */
    };
    uint32_t index; /* see statistics_at() */
    union {
        uint64_t spans, calls; /* of this period, as are errors, duration and self */
    };
    uint64_t errors;
    uint64_t ever;             /* spans since the row was made */
    struct histogram duration; /* of spans with a known duration */
    struct histogram self;     /* self times: see struct trace_node */
    /* Durations of earlier periods, to know the usual ones. Above 2^20 spans all counts are halved,
     * so older spans count less. */
    struct histogram past;
};

struct statistics;

/* Returns NULL when out of memory. The caller owns the names, which must live longer. */
struct statistics *statistics_new(struct names *names);
void statistics_free(struct statistics *statistics);

/* Counts a span and its duration. Self times and calls need the whole trace: see open_traces.h.
 * Returns false when out of memory. */
bool statistics_add_span(struct statistics *statistics, const struct trace_span *span);

/* Returns the row of a pair, or the row of other pairs if the kind is full; makes a new row if
 * there is none. NULL when out of memory. */
struct statistics_row *statistics_add(struct statistics *statistics, enum statistics_kind kind,
                                      uint32_t first, uint32_t second);

/* Returns the row of a pair, or the row of other pairs; NULL: none. */
const struct statistics_row *statistics_find_row(const struct statistics *statistics,
                                                 uint32_t service, uint32_t name);

/* Sets counts and histograms to 0; rows, edges and `ever` stay. Durations move to the past. Out of
 * memory: a part of the past is missing. */
void statistics_begin_period(struct statistics *statistics);

/* Returns a number that changes whenever the past changes. */
uint64_t statistics_period(const struct statistics *statistics);

/* Returns the memory of all histograms. */
size_t statistics_bytes(const struct statistics *statistics);

/* Removes all rows and edges. */
void statistics_clear(struct statistics *statistics);

/* Returns the number of rows of a kind, and row i in order of creation. */
size_t statistics_size(const struct statistics *statistics, enum statistics_kind kind);
const struct statistics_row *statistics_at(const struct statistics *statistics,
                                           enum statistics_kind kind, size_t i);
const struct names *statistics_names(const struct statistics *statistics);

static inline bool statistics_is_other(const struct statistics_row *row)
{
    return row->service == NAMES_OTHER && row->name == NAMES_OTHER;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/*
 * Calls between services in a trace: the edges of the service graph.
 *
 * For spans that have kinds, these are the links of Zipkin's dependencies. A server's span is a
 * call by the service of the nearest ancestor with a kind, or by the remote service. A client's
 * span without children is a call of the remote service, which is not traced. A span without a kind
 * that names both services is such a call, too. A message counts if the span names the broker.
 *
 * Two rules differ from Zipkin. A span without such a link is a call by the parent's service, if
 * that is another service: so programs without kinds have a graph, too. A span whose parent is
 * missing is no child of the root.
 */
struct trace_call {
    uint32_t caller; /* services, never NAMES_NONE */
    uint32_t callee;
    int64_t duration_ns; /* of the callee's span, or as the caller sees the call; 0: not known */
    bool is_error;
};

/* The most calls of one span. */
#define TRACE_CALLS_MAX 2

/* Writes the calls of a span of a linked trace, and returns their number. */
int trace_calls(const struct trace_model *linked, uint32_t span,
                struct trace_call calls[TRACE_CALLS_MAX]);

/* Counts the trace's spans, with their durations and self times, and its calls. Returns false when
 * out of memory: then a part of the trace is counted. */
bool statistics_add_trace(struct statistics *statistics, const struct trace_model *linked);

/* Counts only self times and calls, for spans that were counted before their trace was complete. */
bool statistics_add_rest(struct statistics *statistics, const struct trace_model *linked);

#endif
