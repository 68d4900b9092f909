/*
 * The pipeline at work, and its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pipeline.h"

#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <inttypes.h>

static void pipeline_say_error(const struct pipeline *pipeline, const char *message)
{
    pipeline->calls.say(pipeline->calls.context, BT_LOGGING_LEVEL_ERROR, message);
}

static void pipeline_look_at_stages(struct pipeline *pipeline)
{
    struct input_counts *counts = &pipeline->intake.counts;
    const struct stage_counts *chain = &pipeline->chain.counts;

    counts->rules = pairing_counts(pipeline->rules);
    counts->join = join_stage_counts(pipeline->join);
    counts->hosts = hosts_stage_counts(pipeline->hosts);
    counts->tail = tail_stage_counts(pipeline->tail);
    counts->spans = chain->in;
    counts->spans_handed_over = pipeline->chain.handed_over;
    counts->spans_skipped = chain->left_out[STAGE_SKIPPED];
    counts->spans_sampled_out = chain->left_out[STAGE_SAMPLED_OUT];
}

static void pipeline_look_at_checkpoint(struct pipeline *pipeline)
{
    struct checkpoint_counts counts;

    if (!pipeline->checkpoint)
        return;
    counts = checkpoint_counts(pipeline->checkpoint);
    pipeline->intake.counts.events_held = counts.events_held;
    pipeline->intake.counts.spans_taken_over = counts.spans_taken_over;
    pipeline->intake.counts.checkpoint_errors = counts.errors;
    /* what is held is counted where it is used, in this run or the next */
    if (pipeline->hold)
        pipeline->intake.counts.events =
            pipeline->intake.counts.foreign + pipeline->intake.counts.unreadable +
            pipeline->intake.counts.newer + pipeline->intake.counts.alarms +
            assembler_counts(pipeline->assembler)->events;
}

static void pipeline_look_at_all(struct pipeline *pipeline)
{
    pipeline_look_at_checkpoint(pipeline);
    pipeline_look_at_stages(pipeline);
}

/* Of a recorded trace that is read again the next run sees the same gaps, and counts them. */
static const struct assembler_counts *pipeline_core_counts(struct pipeline *pipeline)
{
    const struct assembler_counts *counts = assembler_counts(pipeline->assembler);

    if (!pipeline->hold || pipeline->is_finishing)
        return counts;
    pipeline->core = *counts;
    pipeline->core.events_missing = pipeline->core.metrics_missing = 0;
    return &pipeline->core;
}

static void pipeline_publish_now(struct pipeline *pipeline)
{
    pipeline_look_at_all(pipeline);
    account_publish_now(pipeline->account, &pipeline->intake.counts,
                        pipeline_core_counts(pipeline));
}

#define FLUSH_STEP 1024 /* spans: well below a millisecond */

/* There may be a million open spans: an interruption in between is heeded. */
static void pipeline_flush(struct pipeline *pipeline)
{
    pairing_flush(pipeline->rules);
    while (assembler_flush_some(pipeline->assembler, FLUSH_STEP))
        (void)exporter_heed_interruption(pipeline->exporter);
    while (chain_flush_some(&pipeline->chain, FLUSH_STEP))
        (void)exporter_heed_interruption(pipeline->exporter);
}

/* Of spans that the collector does not want, no further run would make it take one. */
static bool pipeline_is_settled(struct pipeline *pipeline)
{
    const struct exporter_counts out = exporter_counts(pipeline->exporter);
    struct error error;

    return !out.unsure && exporter_is_stored(pipeline->exporter, &error) &&
           !out.outcome[OUTCOME_UNDELIVERED] && !out.outcome[OUTCOME_DROPPED] &&
           !out.outcome[OUTCOME_NO_MEMORY];
}

static bool pipeline_is_starved(const struct pipeline *pipeline)
{
    return pipeline->intake.is_starved || assembler_is_starved(pipeline->assembler) ||
           pairing_is_starved(pipeline->rules);
}

void pipeline_end(struct pipeline *pipeline)
{
    struct counts counts;
    struct error error;

    if (pipeline->has_ended)
        return;
    pipeline->has_ended = true;
    if (pipeline->exporter) {
        if (!pipeline->hold)
            pipeline_flush(pipeline);
        pipeline_publish_now(pipeline);
        if (!exporter_close(pipeline->exporter, &error))
            pipeline_say_error(pipeline, error.text);
        pipeline->is_finishing = pipeline->has_read_all && !pipeline_is_starved(pipeline) &&
                                 pipeline_is_settled(pipeline);
    }
    if (pipeline->checkpoint)
        checkpoint_keep(pipeline->checkpoint, true);
    pipeline_look_at_all(pipeline);
    counts =
        account_end(pipeline->account, &pipeline->intake.counts, pipeline_core_counts(pipeline));
    if (pipeline->rules_report)
        pairing_report(pipeline->rules, pipeline->rules_report);
    pipeline->calls.summary(pipeline->calls.context, &counts);
    if (!counts_add_up(&counts) || !chain_adds_up(&pipeline->chain))
        pipeline_say_error(pipeline, "the account does not add up: this is a bug of BlkKin");
}

/* Whether all has ended as it should: error is set if not. */
static bool pipeline_has_delivered(struct pipeline *pipeline, struct error *error)
{
    const struct exporter_counts out = exporter_counts(pipeline->exporter);
    const uint64_t delivered =
        out.outcome[OUTCOME_ACCEPTED] + out.outcome[OUTCOME_SPOOLED] - out.spool.lost_own;

    if (out.unsure)
        error_set(error, "%" PRIu64 " spans may not be in the file: the last write failed",
                  out.unsure);
    else if (delivered != out.spans)
        error_set(error, "%" PRIu64 " of %" PRIu64 " spans were not delivered",
                  out.spans - delivered, out.spans);
    else
        return exporter_is_stored(pipeline->exporter, error);
    return false;
}

static bool pipeline_finish_checkpoint(struct pipeline *pipeline, struct error *error)
{
    if (!pipeline->hold)
        return true;
    if (pipeline_is_starved(pipeline)) {
        checkpoint_begin_anew(pipeline->checkpoint);
        return error_set(error, "there was not enough memory for the whole trace: run this again, "
                                "and all of it is sent");
    }
    return !pipeline_is_settled(pipeline) || checkpoint_finish(pipeline->checkpoint, error);
}

/* Without anything in it, the trace is gone but for its name: see checkpoint_end_trace(). */
static bool pipeline_is_gone(const struct pipeline *pipeline)
{
    return pipeline->intake.counts.events == 0 && pipeline->intake.end_ns == 0;
}

/* What the stages hold; but one that is off holds nothing for the next trace. */
static void pipeline_leave_to_next(struct pipeline *pipeline)
{
    chain_advance(&pipeline->chain, assembler_now(pipeline->assembler));
    while (chain_flush_some_off(&pipeline->chain, FLUSH_STEP))
        (void)exporter_heed_interruption(pipeline->exporter);
    chain_hand_over(&pipeline->chain);
}

bool pipeline_finish(struct pipeline *pipeline, struct error *error)
{
    bool has_told;

    if (pipeline->hold)
        checkpoint_end_trace(pipeline->checkpoint,
                             pipeline->intake.end_ns > pipeline->until_ns ? pipeline->intake.end_ns
                                                                          : pipeline->until_ns,
                             pipeline_is_gone(pipeline));
    if (pipeline->flushes)
        pipeline_flush(pipeline);
    else
        pipeline_leave_to_next(pipeline);
    /* all of the trace was read: of less it would be false */
    has_told = !pipeline->only || only_write_found(pipeline->only, error);
    pipeline_publish_now(pipeline);
    exporter_flush(pipeline->exporter);
    pipeline->has_read_all = true;
    pipeline_end(pipeline);
    return has_told && pipeline_finish_checkpoint(pipeline, error) &&
           pipeline_has_delivered(pipeline, error);
}

/*
 * A live session's. Checkpoint and statistics file are of the same moment: when we are killed, who
 * adds the account of the next run to ours has every event once, as read or as missing.
 */
static void pipeline_keep_checkpoint(struct pipeline *pipeline)
{
    if (!pipeline->checkpoint || !checkpoint_is_due(pipeline->checkpoint))
        return;
    pipeline_publish_now(pipeline);
    account_keep(pipeline->account);
    checkpoint_keep(pipeline->checkpoint, false);
}

void pipeline_rest(struct pipeline *pipeline)
{
    if (account_is_due(pipeline->account))
        pipeline_publish_now(pipeline);
    pipeline_keep_checkpoint(pipeline);
}

bool pipeline_go_on(struct pipeline *pipeline, struct error *error)
{
    struct error cause = {""};

    chain_advance(&pipeline->chain, assembler_now(pipeline->assembler));
    pipeline_rest(pipeline);
    if (pipeline->hold && checkpoint_has_failed(pipeline->checkpoint, error))
        return false;
    if (!exporter_has_failed(pipeline->exporter, &cause))
        return true;
    return error_set(error, "the trace was not read to its end: cannot deliver: %.900s",
                     cause.text);
}

void pipeline_set_live(struct pipeline *pipeline)
{
    exporter_set_live(pipeline->exporter);
}

void pipeline_watch(struct pipeline *pipeline)
{
    pipeline_set_live(pipeline);
    account_watch(pipeline->account);
}

bool pipeline_is_stored(struct pipeline *pipeline, struct error *error)
{
    return exporter_is_stored(pipeline->exporter, error);
}

struct counts pipeline_counts(struct pipeline *pipeline)
{
    pipeline_publish_now(pipeline);
    return account_counts(pipeline->account);
}
