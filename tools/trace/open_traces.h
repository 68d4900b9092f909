/*
 * Traces whose spans are still coming: kept until none came for a while, then taken for complete
 * and put into the statistics of self time. For as much memory as is given to them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OPEN_TRACES_H
#define BLKIN_TOOLS_OPEN_TRACES_H

#include "statistics.h"

/* A child comes before its parent, but for what other hosts' sinks are behind. */
#define OPEN_TRACES_QUIET_MS 2000
#define OPEN_TRACES_BYTES    ((size_t)64 << 20)
#define OPEN_TRACE_SPANS_MAX 10000 /* of one trace */

struct open_traces;

struct open_traces_counts {
    uint64_t complete; /* were quiet, or it was the end */
    uint64_t early;    /* made room: a child that came later is missing in their self times */
    size_t open;
};

/* What is complete goes to statistics. Returns NULL when out of memory. */
struct open_traces *open_traces_new(struct statistics *statistics);
void open_traces_free(struct open_traces *traces);

/* Copies the span. Out of memory: these return false. */
bool open_traces_add(struct open_traces *traces, const struct span *span, int64_t now_ms);
bool open_traces_close_quiet(struct open_traces *traces, int64_t now_ms);
bool open_traces_close_all(struct open_traces *traces);

/* Since the last call. */
struct open_traces_counts open_traces_counts(struct open_traces *traces);

#endif
