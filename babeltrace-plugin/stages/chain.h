/*
 * The chain: the stages that a finished span passes between the assembler and the exporter.
 *
 * A stage takes a span and passes it on, holds it, or leaves it out. It knows no other stage. The
 * chain knows their order, tells them the time, empties them, and counts:
 *
 *     in = out + left out + held        for each stage, and for the chain, at all times
 *
 * A new feature between the assembler and the exporter is a new stage: a struct that begins with
 * struct stage, and a struct stage_kind with its functions.
 *
 * Time is trace time. Not thread-safe: the graph's thread drives a chain.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_CHAIN_H
#define BLKIN_STAGES_CHAIN_H

#include "babeltrace-plugin/spans/marks.h"
#include "babeltrace-plugin/spans/span.h"

struct assembler;
struct stage;

/* Why a span is left out. */
enum stage_reason {
    STAGE_SKIPPED,     /* it was delivered before */
    STAGE_SAMPLED_OUT, /* with its trace */
    STAGE_REASONS
};

struct stage_kind {
    const char *name;

    /* stage_pass() or stage_leave_out(), now or later. The span is the caller's: copy what is held.
     * The stage may change it, and may replace its log by one of malloc(). */
    void (*take)(struct stage *stage, struct span *span);

    /* All that follows may be NULL: of a stage that holds nothing. */

    /* Time has reached stage_now(): passes on what need not wait any longer. */
    void (*advance)(struct stage *stage);
    /* Nothing else will come: passes on, or leaves out, about so many. Returns whether it still
     * holds any. */
    bool (*flush_some)(struct stage *stage, unsigned most);
    /* How many spans it holds, as it knows it itself: chain.c compares that with the counts. */
    uint64_t (*held)(const struct stage *stage);
    void (*free)(struct stage *stage);
};

/* Spans. */
struct stage_counts {
    uint64_t in;
    uint64_t out;
    uint64_t left_out[STAGE_REASONS];
};

struct stage {
    const struct stage_kind *kind;
    /* the chain's */
    struct chain *chain;
    struct stage *next;
    struct stage_counts counts;
};

typedef void chain_deliver_fn(void *context, const struct span *span);

struct chain {
    struct stage *first;
    chain_deliver_fn *deliver; /* behind the last stage */
    void *context;
    struct marks *marks; /* NULL: nobody asks */
    int64_t now_ns;
    struct stage_counts counts;
};

void chain_init(struct chain *chain, chain_deliver_fn *deliver, void *context);

/* Behind the last one. The chain frees it. */
void chain_append(struct chain *chain, struct stage *stage);

/* What is held is lost: see chain_flush_some(). */
void chain_free(struct chain *chain);

/* A finished span. */
void chain_take(struct chain *chain, struct span *span, int64_t now_ns);

void chain_advance(struct chain *chain, int64_t now_ns);

/*
 * No other span will come: empties the first stage that holds any by about so many. Returns whether
 * there are more.
 */
bool chain_flush_some(struct chain *chain, unsigned most);

uint64_t chain_held(const struct chain *chain);

/* Whether the sums hold, for each stage and for the chain. */
bool chain_adds_up(const struct chain *chain);

/* ---- for stages ------------------------------------------------------------------------------ */

static inline int64_t stage_now(const struct stage *stage)
{
    return stage->chain->now_ns;
}

void stage_pass(struct stage *stage, struct span *span);

void stage_leave_out(struct stage *stage, enum stage_reason reason, const struct span *span);

/* A stage whose take() needs no state: whether a span is left out, as delivered before. */
typedef bool stage_skip_fn(void *context, struct span *span);

/* Returns NULL when out of memory. */
struct stage *skip_stage_new(const char *name, stage_skip_fn *skips, void *context);

#endif
