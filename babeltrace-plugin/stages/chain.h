/*
 * The chain of stages that a finished span passes between the assembler and the exporter.
 *
 * A stage takes a span and passes it on, holds it, or leaves it out. A stage knows no other stage.
 * The chain knows their order, tells them the time, flushes them, and checks their counts:
 *
 *     in = out + left out + held        for each stage, and for the chain, at all times
 *
 * A new feature between the assembler and the exporter is a new stage: a struct that begins with
 * struct stage, and a struct stage_kind with its functions.
 *
 * Time is trace time. Not thread-safe: one thread drives a chain.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_CHAIN_H
#define BLKIN_STAGES_CHAIN_H

#include "babeltrace-plugin/spans/span.h"

struct assembler;
struct stage;

/* The reason why a span is left out. */
enum stage_reason {
    STAGE_SKIPPED,     /* delivered before */
    STAGE_SAMPLED_OUT, /* with its trace */
    STAGE_REASONS
};

struct stage_kind {
    const char *name;

    /*
     * Calls stage_pass() or stage_leave_out(), now or later. The caller owns the span: a stage that
     * holds the span copies it. The stage may change the span, and may replace its log by one of
     * malloc().
     */
    void (*take)(struct stage *stage, struct span *span);
    void (*free)(struct stage *stage);

    /* A stage that holds no spans has NULL in the following members. */

    /* Passes on the spans whose wait is over at stage_now(). */
    void (*advance)(struct stage *stage);
    /* No further span will arrive: passes on or leaves out about `most` spans. Returns whether the
     * stage still holds spans. */
    bool (*flush_some)(struct stage *stage, unsigned most);
    /* The stage's own number of held spans. chain.c compares that number with the counts. */
    uint64_t (*held)(const struct stage *stage);
};

/* Numbers of spans. */
struct stage_counts {
    uint64_t in;
    uint64_t out;
    uint64_t left_out[STAGE_REASONS];
};

struct stage {
    const struct stage_kind *kind;
    /* set by the chain */
    struct chain *chain;
    struct stage *next;
    struct stage_counts counts;
};

typedef void chain_deliver_fn(void *context, const struct span *span);

struct chain {
    struct stage *first;
    chain_deliver_fn *deliver; /* gets the spans that pass the last stage */
    void *context;
    struct marks *marks; /* NULL: no marks */
    int64_t now_ns;
    struct stage_counts counts;
};

void chain_init(struct chain *chain, chain_deliver_fn *deliver, void *context);

/* Appends a stage. The chain frees the stage. */
void chain_append(struct chain *chain, struct stage *stage);

/* Frees the stages. Held spans are lost: see chain_flush_some(). */
void chain_free(struct chain *chain);

/* Gives a finished span to the first stage. */
void chain_take(struct chain *chain, struct span *span, int64_t now_ns);

/* Sets trace time, and lets the stages pass on spans whose wait is over. */
void chain_advance(struct chain *chain, int64_t now_ns);

/* No further span will arrive: takes about `most` spans out of the first stage that holds spans.
 * Returns false if no stage holds spans. */
bool chain_flush_some(struct chain *chain, unsigned most);

uint64_t chain_held(const struct chain *chain);

/* Returns true if the sums are right, for each stage and for the chain. */
bool chain_adds_up(const struct chain *chain);

/* ---- called by stages ------------------------------------------------------------------------ */

static inline int64_t stage_now(const struct stage *stage)
{
    return stage->chain->now_ns;
}

void stage_pass(struct stage *stage, struct span *span);

void stage_leave_out(struct stage *stage, enum stage_reason reason, const struct span *span);

/* Returns true for a span that was delivered before: the stage leaves such spans out. */
typedef bool stage_skip_fn(void *context, struct span *span);

/* Returns NULL when out of memory. */
struct stage *skip_stage_new(const char *name, stage_skip_fn *skips, void *context);

#endif
