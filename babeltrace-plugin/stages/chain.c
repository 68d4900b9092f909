/* SPDX-License-Identifier: BSD-2-Clause */
#include "chain.h"

#include <stdlib.h>

void chain_init(struct chain *chain, chain_deliver_fn *deliver, void *context)
{
    *chain = (struct chain){.deliver = deliver, .context = context, .now_ns = INT64_MIN};
}

void chain_append(struct chain *chain, struct stage *stage)
{
    struct stage **end = &chain->first;

    while (*end)
        end = &(*end)->next;
    *end = stage;
    stage->next = NULL;
    stage->chain = chain;
}

void chain_free(struct chain *chain)
{
    struct stage *next;

    for (struct stage *stage = chain->first; stage; stage = next) {
        next = stage->next;
        stage->kind->free(stage);
    }
    chain->first = NULL;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void chain_give(struct chain *chain, struct stage *stage, struct span *span)
{
    if (stage) {
        stage->counts.in++;
        stage->kind->take(stage, span);
    } else {
        chain->counts.out++;
        chain->deliver(chain->context, span);
        marks_release(chain->marks, span->mark);
    }
}

void stage_pass(struct stage *stage, struct span *span)
{
    stage->counts.out++;
    chain_give(stage->chain, stage->next, span);
}

void stage_leave_out(struct stage *stage, enum stage_reason reason, const struct span *span)
{
    stage->counts.left_out[reason]++;
    stage->chain->counts.left_out[reason]++;
    marks_release(stage->chain->marks, span->mark);
}

void chain_take(struct chain *chain, struct span *span, int64_t now_ns)
{
    chain->now_ns = now_ns;
    chain->counts.in++;
    span->mark = marks_hold(chain->marks, span->mark);
    chain_give(chain, chain->first, span);
}

/* The next stage takes a stage's output before that next stage gets the new time. */
void chain_advance(struct chain *chain, int64_t now_ns)
{
    chain->now_ns = now_ns;
    for (struct stage *stage = chain->first; stage; stage = stage->next) {
        if (stage->kind->advance)
            stage->kind->advance(stage);
    }
}

bool chain_flush_some(struct chain *chain, unsigned most)
{
    for (struct stage *stage = chain->first; stage; stage = stage->next) {
        if (stage->kind->flush_some && stage->kind->held(stage)) {
            (void)stage->kind->flush_some(stage, most);
            return true;
        }
    }
    return false;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static uint64_t held_by(const struct stage *stage)
{
    return stage->kind->held ? stage->kind->held(stage) : 0;
}

uint64_t chain_held(const struct chain *chain)
{
    uint64_t held = 0;

    for (const struct stage *stage = chain->first; stage; stage = stage->next)
        held += held_by(stage);
    return held;
}

static bool adds_up(const struct stage_counts *counts, uint64_t held)
{
    uint64_t sum = counts->out + held;

    for (int reason = 0; reason < STAGE_REASONS; reason++)
        sum += counts->left_out[reason];
    return counts->in == sum;
}

bool chain_adds_up(const struct chain *chain)
{
    for (const struct stage *stage = chain->first; stage; stage = stage->next) {
        if (!adds_up(&stage->counts, held_by(stage)))
            return false;
    }
    return adds_up(&chain->counts, chain_held(chain));
}

/* ---- the stage that skips spans -------------------------------------------------------------- */

struct skip_stage {
    struct stage stage;
    struct stage_kind kind;
    stage_skip_fn *skips;
    void *context;
};

static void skip_stage_take(struct stage *stage, struct span *span)
{
    const struct skip_stage *skip = (const struct skip_stage *)stage;

    if (skip->skips(skip->context, span))
        stage_leave_out(stage, STAGE_SKIPPED, span);
    else
        stage_pass(stage, span);
}

static void skip_stage_free(struct stage *stage)
{
    free(stage);
}

struct stage *skip_stage_new(const char *name, stage_skip_fn *skips, void *context)
{
    struct skip_stage *skip = calloc(1, sizeof(*skip));

    if (!skip)
        return NULL;
    skip->kind =
        (struct stage_kind){.name = name, .take = skip_stage_take, .free = skip_stage_free};
    skip->stage.kind = &skip->kind;
    skip->skips = skips;
    skip->context = context;
    return &skip->stage;
}
