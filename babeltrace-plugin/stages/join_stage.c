/*
 * Joining as a stage.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_stage.h"

#include <stdlib.h>

struct join_stage {
    struct stage stage;
    struct join *join;
};

static struct join *join_of(const struct stage *stage)
{
    return ((const struct join_stage *)stage)->join;
}

static void join_stage_deliver(void *context, struct span *span)
{
    stage_pass(context, span);
}

static void join_stage_take(struct stage *stage, struct span *span)
{
    if (!join_add(join_of(stage), span, stage_now(stage)))
        stage_pass(stage, span);
}

static void join_stage_advance(struct stage *stage)
{
    join_advance(join_of(stage), stage_now(stage));
}

static bool join_stage_flush_some(struct stage *stage, unsigned most)
{
    return join_flush_some(join_of(stage), most);
}

static uint64_t join_stage_held(const struct stage *stage)
{
    return join_counts(join_of(stage)).spans_held;
}

static void join_stage_hand_over(struct stage *stage)
{
    join_hand_over(join_of(stage));
}

static void join_stage_save(const struct stage *stage, struct assembler *assembler,
                            struct state_writer *writer)
{
    join_save(join_of(stage), assembler, writer);
}

static void join_stage_restore(struct stage *stage, struct assembler *assembler,
                               struct state_reader *reader)
{
    join_restore(join_of(stage), assembler, reader);
}

static void join_stage_free(struct stage *stage)
{
    join_free(join_of(stage));
    free(stage);
}

static const struct stage_kind join_stage_kind = {
    .name = "join",
    .take = join_stage_take,
    .advance = join_stage_advance,
    .flush_some = join_stage_flush_some,
    .held = join_stage_held,
    .hand_over = join_stage_hand_over,
    .save = join_stage_save,
    .restore = join_stage_restore,
    .free = join_stage_free,
};

struct stage *join_stage_new(const struct join_options *options)
{
    struct join_stage *stage = calloc(1, sizeof(*stage));

    if (!stage)
        return NULL;
    stage->stage.kind = &join_stage_kind;
    stage->join = join_new(options, join_stage_deliver, &stage->stage);
    if (stage->join)
        return &stage->stage;
    free(stage);
    return NULL;
}

struct join_counts join_stage_counts(const struct stage *stage)
{
    return join_counts(join_of(stage));
}
