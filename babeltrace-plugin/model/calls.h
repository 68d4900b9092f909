/*
 * Who calls whom in a trace: the service graph's edges.
 *
 * Where spans have kinds, these are the links that Zipkin's dependencies count: a server's span is
 * a call by the service of the nearest span above it that has a kind, or by its remote service; a
 * client's (or one that names both services) counts if nothing is below it, as a call of the remote
 * service, that is not traced then; a message counts if it names its broker.
 *
 * Two things differ. A span that Zipkin makes no link of, but whose parent is of another service,
 * counts as a call of that one: so programs that record no kinds have a graph, too. And a span
 * whose parent is missing is not taken for a child of the root.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_CALLS_H
#define BLKIN_ANALYSIS_CALLS_H

#include "statistics.h"

struct trace_call {
    uint32_t caller; /* services, never NAMES_NONE */
    uint32_t callee;
    int64_t duration_ns; /* of the callee's span, or as its caller sees it; 0: not known */
    bool is_error;
};

/* Of one span there are two at the most. */
#define TRACE_CALLS_MAX 2

/* Fills in the calls of which this span tells, and returns how many there are. The trace is
 * linked. */
int trace_calls(const struct trace_model *linked, uint32_t span,
                struct trace_call calls[TRACE_CALLS_MAX]);

/* Counts the trace's spans, with their durations and self times, and its calls. Out of memory:
 * these return false, and only a part is added. */
bool statistics_add_trace(struct statistics *statistics, const struct trace_model *linked);

/* The self times and calls alone: the spans were counted before their trace was there. */
bool statistics_add_rest(struct statistics *statistics, const struct trace_model *linked);

#endif
