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
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_CALLS_H
#define BLKIN_ANALYSIS_CALLS_H

#include "statistics.h"

struct trace_call {
    uint32_t caller; /* services, never NAMES_NONE */
    uint32_t callee;
    int64_t duration_ns; /* of the callee's span, or as the caller sees the call; 0: not known */
    bool is_error;
};

/* Most calls of one span. */
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
