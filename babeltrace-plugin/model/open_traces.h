/*
 * Traces whose spans still arrive. A trace is complete after a quiet time: then it is linked and
 * given to the caller. A memory limit bounds all open traces.
 *
 * Times are the caller's, of any clock and in any unit. A time that goes back counts as the latest
 * time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MODEL_OPEN_TRACES_H
#define BLKIN_MODEL_OPEN_TRACES_H

#include "model.h"

struct closed_trace {
    uint64_t trace_id_high;
    uint64_t trace_id;
    const struct trace_model *model; /* see is_linked */
    bool is_linked;                  /* false: out of memory, the model has only the spans */
    bool is_early;                   /* closed to make room: more spans may follow */
};

struct open_traces_options {
    uint64_t quiet;     /* quiet time after the last span of a complete trace */
    size_t max_bytes;   /* of all traces; above, the longest quiet trace is closed */
    uint32_t max_spans; /* of one trace, which is then closed early */
    void (*close)(void *context, const struct closed_trace *closed);
    void *context;
};

struct open_traces_counts {
    uint64_t complete; /* closed after the quiet time, or at the end */
    uint64_t early;
    uint64_t open;
    uint64_t open_spans;
    uint64_t open_bytes;
};

struct open_traces;

/* Returns NULL when out of memory. */
struct open_traces *open_traces_new(const struct open_traces_options *options);

/* Frees all. Open traces are lost. */
void open_traces_free(struct open_traces *traces);

/* Adds a span and `bytes` bytes of the caller's, then closes traces that exceed a limit. Returns
 * false when out of memory: then the span is not added. */
bool open_traces_add(struct open_traces *traces, uint64_t trace_id_high, uint64_t trace_id,
                     const struct trace_span *span, size_t bytes, int64_t now);

/* Calls the function for each open trace, the longest quiet one first. */
void open_traces_each(const struct open_traces *traces,
                      void (*each)(const struct trace_span *spans, uint32_t count));

/* Closes traces whose quiet time is over. */
void open_traces_advance(struct open_traces *traces, int64_t now);

/* Closes up to `count` traces. Returns whether there are more. */
bool open_traces_close_some(struct open_traces *traces, uint64_t count);

struct open_traces_counts open_traces_counts(const struct open_traces *traces);

#endif
