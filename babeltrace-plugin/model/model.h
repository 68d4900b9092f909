/*
 * A whole trace: its spans as a tree, self times, where it began, what is missing. The one model of
 * a trace, for the command's pictures and tables, for workers and for tail sampling.
 *
 * Knows nothing of formats, and allocates only when a trace is larger than any before.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_MODEL_H
#define BLKIN_ANALYSIS_MODEL_H

#include "babeltrace-plugin/spans/span.h"
#include "names.h"

#include <stdbool.h>
#include <stdint.h>

/* A span, as far as the tree, times and statistics go. */
struct trace_span {
    uint64_t id;
    uint64_t parent_id;  /* 0: a root */
    int64_t start_ns;    /* since 1970; 0: not known */
    int64_t duration_ns; /* 0: not known */
    uint32_t service;    /* see names.h */
    uint32_t name;
    uint32_t remote_service; /* the other side, as this span tells; NAMES_NONE: it does not */
    uint8_t kind;            /* enum span_kind */
    bool is_error;
    bool is_shared; /* the server's half of a span that its client has begun, under the same id */
    const void *of; /* the caller's */
};

/* As far as the model wants to know it. */
struct trace_span trace_span_of(const struct span *span, struct names *names);

#define TRACE_NONE UINT32_MAX

/* The place of the span of the same index. */
struct trace_node {
    uint32_t parent; /* index, or TRACE_NONE: at the top; so are the next ones */
    uint32_t first_child;
    uint32_t next; /* of the same parent, by time; or at the top */
    uint32_t depth;
    uint32_t remote; /* the nearest ancestor that has a kind: what is between is in one process */
    bool is_orphan;  /* has a parent that is not in the trace, or is its own ancestor */
    /*
     * The duration without the times in which some child is under way. Of a client's span whose
     * child is the server's it is the time on the network, and in the server's queues.
     */
    int64_t self_ns;
};

struct trace_model {
    struct trace_span *spans; /* by time, those without one last: linking sorts them, stable */
    struct trace_node *nodes;
    uint32_t count;
    uint32_t first_top; /* TRACE_NONE: no spans */
    uint32_t roots;     /* spans without a parent */
    uint32_t orphans;
    uint32_t errors;
    int64_t start_ns; /* of the first span that has a time; 0: none has */
    int64_t end_ns;
    uint32_t longest_self; /* index; TRACE_NONE: none has any */
    /* what is behind it */
    uint32_t capacity;
    uint32_t *table;
    uint32_t table_size; /* of this trace; */
    uint32_t table_room;
    uint64_t seed;
};

/* Zeros are an empty one. */
void trace_model_destroy(struct trace_model *model);

/* Empties it; the memory is kept. */
void trace_model_clear(struct trace_model *model);

/* Times that cannot be are taken for not known. Returns false when out of memory. */
bool trace_model_add(struct trace_model *model, const struct trace_span *span);

/* Fills the rest, once all spans are in. In time n log n whatever the spans are. Returns false when
 * out of memory. */
bool trace_model_link(struct trace_model *model);

/* One root, and every parent is there. */
static inline bool trace_model_is_whole(const struct trace_model *model)
{
    return model->roots == 1 && model->orphans == 0;
}

/* The node after this one, children before siblings; TRACE_NONE after the last one. */
uint32_t trace_model_next(const struct trace_model *model, uint32_t node);

#endif
