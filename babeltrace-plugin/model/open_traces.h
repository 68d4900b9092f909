/*
 * Traces whose spans are still coming: kept until none came for a while, then taken for complete,
 * linked and given to the caller. For as much memory as is given to them.
 *
 * Times are the caller's, of any clock and in any unit; one that goes back is taken for the latest.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_OPEN_TRACES_H
#define BLKIN_ANALYSIS_OPEN_TRACES_H

#include "model.h"

struct closed_trace {
    uint64_t trace_id_high;
    uint64_t trace_id;
    const struct trace_model *model; /* is_linked says how far */
    bool is_linked;                  /* false: out of memory, there are only the spans */
    bool is_early;                   /* it made room: spans of it may come later */
};

struct open_traces_options {
    uint64_t quiet;   /* so long after its last span a trace is taken for complete */
    size_t max_bytes; /* of all together; with more, the one that is quiet for longest is closed */
    uint32_t max_spans; /* of one trace; with as many it is closed: see is_early */
    void (*close)(void *context, const struct closed_trace *closed);
    void *context;
};

struct open_traces_counts {
    uint64_t complete; /* were quiet, or it was the end */
    uint64_t early;
    uint64_t open;
    uint64_t open_spans;
    uint64_t open_bytes;
};

struct open_traces;

/* Returns NULL when out of memory. */
struct open_traces *open_traces_new(const struct open_traces_options *options);

/* What is open is lost. */
void open_traces_free(struct open_traces *traces);

/*
 * The span takes so many bytes besides, of the caller's. Closes what has to make room. Out of
 * memory: returns false, the span is not in it.
 */
bool open_traces_add(struct open_traces *traces, uint64_t trace_id_high, uint64_t trace_id,
                     const struct trace_span *span, size_t bytes, int64_t now);

/* All that are open, the one that is quiet for longest first. last: when its last span came. */
typedef void open_traces_fn(void *context, int64_t last, const struct trace_span *spans,
                            uint32_t count);
void open_traces_each(const struct open_traces *traces, open_traces_fn *each, void *context);

/* Closes what is quiet by now. */
void open_traces_advance(struct open_traces *traces, int64_t now);

/* Closes up to so many, and returns whether there are more. */
bool open_traces_close_some(struct open_traces *traces, uint64_t count);

struct open_traces_counts open_traces_counts(const struct open_traces *traces);

#endif
