/*
 * Hosts as a stage.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "hosts_stage.h"

#include <stdlib.h>

struct hosts_stage {
    struct stage stage;
    struct hosts *hosts;
};

static struct hosts *hosts_of(const struct stage *stage)
{
    return ((const struct hosts_stage *)stage)->hosts;
}

static void hosts_stage_deliver(void *context, struct span *span)
{
    stage_pass(context, span);
}

static void hosts_stage_take(struct stage *stage, struct span *span)
{
    if (hosts_wants(hosts_of(stage), span))
        hosts_hold(hosts_of(stage), span, stage_now(stage));
    else
        stage_pass(stage, span);
}

static void hosts_stage_advance(struct stage *stage)
{
    hosts_advance(hosts_of(stage), stage_now(stage));
}

static bool hosts_stage_flush_some(struct stage *stage, unsigned most)
{
    return hosts_flush_some(hosts_of(stage), most);
}

static uint64_t hosts_stage_held(const struct stage *stage)
{
    return hosts_counts(hosts_of(stage)).spans_held;
}

static void hosts_stage_hand_over(struct stage *stage)
{
    hosts_hand_over(hosts_of(stage));
}

static void hosts_stage_save(const struct stage *stage, struct assembler *assembler,
                             struct state_writer *writer)
{
    hosts_save(hosts_of(stage), assembler, writer);
}

static void hosts_stage_restore(struct stage *stage, struct assembler *assembler,
                                struct state_reader *reader)
{
    hosts_restore(hosts_of(stage), assembler, reader);
}

static void hosts_stage_free(struct stage *stage)
{
    hosts_free(hosts_of(stage));
    free(stage);
}

static const struct stage_kind hosts_stage_kind = {
    .name = "hosts",
    .take = hosts_stage_take,
    .advance = hosts_stage_advance,
    .flush_some = hosts_stage_flush_some,
    .held = hosts_stage_held,
    .hand_over = hosts_stage_hand_over,
    .save = hosts_stage_save,
    .restore = hosts_stage_restore,
    .free = hosts_stage_free,
};

struct stage *hosts_stage_new(const struct hosts_options *options)
{
    struct hosts_stage *stage = calloc(1, sizeof(*stage));

    if (!stage)
        return NULL;
    stage->stage.kind = &hosts_stage_kind;
    stage->hosts = hosts_new(options, hosts_stage_deliver, &stage->stage);
    if (stage->hosts)
        return &stage->stage;
    free(stage);
    return NULL;
}

struct hosts_counts hosts_stage_counts(const struct stage *stage)
{
    return hosts_counts(hosts_of(stage));
}

void hosts_stage_add(struct stage *stage, const struct event *event, int64_t time_ns,
                     int64_t now_ns)
{
    stage->chain->now_ns = now_ns; /* it may pass spans on */
    if (!stage->is_off)
        hosts_add(hosts_of(stage), event, time_ns, now_ns);
}
