/*
 * A whole trace: the tree of its spans, self times, begin, missing parents. Commands such as
 * `blkin show`, the workers, and tail sampling use this one model of a trace.
 *
 * The model keeps its memory between traces; linking more than 16 spans that are out of order also
 * takes a temporary array.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MODEL_MODEL_H
#define BLKIN_MODEL_MODEL_H

#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/spans/span.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * Names as numbers. Services and span names repeat, so they are compared, hashed and stored as 32
 * bits.
 */

/* The empty name: not known. */
#define NAMES_NONE 0U

/* The id of each new name once the table is full. */
#define NAMES_OTHER 1U

struct names;

/* max: the number of names, with the two above. max_bytes: of all names. Returns NULL when out of
 * memory. */
struct names *names_new(uint32_t max, size_t max_bytes);
void names_free(struct names *names);

/* Returns the id of the text: any bytes. Copies a new text. NAMES_OTHER: out of memory, or full. */
uint32_t names_id(struct names *names, struct text text);

/* Returns a text that ends in NUL and lives as long as names. NAMES_NONE and NAMES_OTHER have the
 * text "". */
struct text names_text(const struct names *names, uint32_t id);

uint32_t names_count(const struct names *names);

/* Removes all but NAMES_NONE and NAMES_OTHER. */
void names_clear(struct names *names);

/* ---- traces ---------------------------------------------------------------------------------- */

/* The members of a span that the tree, times and statistics need. */
struct trace_span {
    uint64_t id;
    uint64_t parent_id;  /* 0: a root */
    int64_t start_ns;    /* since 1970; 0: not known */
    int64_t duration_ns; /* 0: not known */
    uint32_t service;    /* see names_id() */
    uint32_t name;
    uint32_t remote_service; /* the other side according to this span; NAMES_NONE: not known */
    uint8_t kind;            /* enum span_kind */
    bool is_error;
    bool is_shared; /* the server's half of a span that a client has begun, under the same id */
    const void *of; /* the caller's pointer */
};

struct trace_span trace_span_of(const struct span *span, struct names *names);

#define TRACE_NONE UINT32_MAX

/* The tree node of the span with the same index. */
struct trace_node {
    uint32_t parent; /* an index; TRACE_NONE: there is none; likewise in the next three members */
    uint32_t first_child;
    uint32_t next; /* sibling, by time */
    /* The nearest ancestor with a kind. Spans between are in one process. */
    uint32_t ancestor_with_kind;
    uint32_t depth;
    /* The parent is not in the trace (never for a shared span), or a cycle of parents was cut here.
     */
    bool is_orphan;
    /* The duration without the times in which a child runs. For a client's span with a server's
     * child this is the time in the network and in the server's queues. */
    int64_t self_ns;
};

/* A struct of zeros is an empty model, and needs no other initialization. */
struct trace_model {
    struct trace_span *spans; /* trace_model_link() sorts spans by start with a stable sort; spans
                                 without a start are last */
    struct trace_node *nodes;
    uint32_t count;
    uint32_t first_top; /* TRACE_NONE: no spans */
    uint32_t roots; /* spans without a parent id, and shared spans whose client's half and parent
                       are missing */
    uint32_t orphans;
    uint32_t errors;
    int64_t start_ns; /* of the first span that has a time; 0: none has */
    int64_t end_ns;
    uint32_t longest_self; /* index; TRACE_NONE: all self times are 0 */
    /* private members */
    uint32_t capacity;
    uint32_t *table;
    uint32_t table_size; /* of this trace */
    uint32_t table_room;
    uint64_t seed;
};

void trace_model_destroy(struct trace_model *model);

/* Empties the model, and keeps its memory for later traces. */
void trace_model_clear(struct trace_model *model);

/* Adds a span. An impossible time counts as not known. Returns false when out of memory. */
bool trace_model_add(struct trace_model *model, const struct trace_span *span);

/* Computes the tree after the last span, in time n log n for any input. Returns false when out of
 * memory. */
bool trace_model_link(struct trace_model *model);

/* Returns true for one root and no missing parent. */
static inline bool trace_model_is_whole(const struct trace_model *model)
{
    return model->roots == 1 && model->orphans == 0;
}

/* Returns the next node, children before siblings; TRACE_NONE after the last node. */
uint32_t trace_model_next(const struct trace_model *model, uint32_t node);

#endif
