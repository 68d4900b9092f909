/*
 * The running pipeline, and its end.
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

    if (pipeline->rules)
        counts->rules = pairing_counts(pipeline->rules);
    if (pipeline->join)
        counts->join = join_stage_counts(pipeline->join);
    if (pipeline->hosts)
        counts->hosts = hosts_stage_counts(pipeline->hosts);
    if (pipeline->tail)
        counts->tail = tail_stage_counts(pipeline->tail);
    counts->spans = chain->in;
    counts->spans_skipped = chain->left_out[STAGE_SKIPPED];
    counts->spans_sampled_out = chain->left_out[STAGE_SAMPLED_OUT];
}

/* Spans that were given out before a mark are settled once they have an outcome. */
static bool pipeline_settle_next(struct pipeline *pipeline)
{
    struct settling *settling = &pipeline->settling;

    if (exporter_settled(pipeline->exporter) < settling->given)
        return false;
    pipeline->intake.counts.settled = settling->next;
    return true;
}

static void pipeline_settle(struct pipeline *pipeline)
{
    struct settling *settling = &pipeline->settling;

    if (!settling->is_asked_for || !pipeline_settle_next(pipeline))
        return;
    settling->next =
        *marks_advance(&settling->marks, &pipeline->intake.read, atomic_load(&settling->sent));
    settling->given = pipeline->chain.counts.out;
    (void)pipeline_settle_next(pipeline);
}

static void pipeline_publish_now(struct pipeline *pipeline)
{
    pipeline_look_at_stages(pipeline);
    account_publish_now(pipeline->account, &pipeline->intake.counts,
                        assembler_counts(pipeline->assembler));
}

#define FLUSH_STEP 1024 /* spans: well below a millisecond */

bool pipeline_flush_some(struct pipeline *pipeline, unsigned most)
{
    if (pipeline->rules)
        pairing_flush(pipeline->rules);
    return assembler_flush_some(pipeline->assembler, most) ||
           chain_flush_some(&pipeline->chain, most);
}

/* Flushes in steps: a million spans may be open, and an interruption must take effect. */
static void pipeline_flush(struct pipeline *pipeline)
{
    while (pipeline_flush_some(pipeline, FLUSH_STEP))
        (void)exporter_heed_interruption(pipeline->exporter);
}

void pipeline_end(struct pipeline *pipeline)
{
    struct counts counts;
    struct error error;

    if (pipeline->has_ended)
        return;
    pipeline->has_ended = true;
    if (pipeline->exporter) {
        pipeline_flush(pipeline);
        pipeline_end_statistics(pipeline);
        pipeline_publish_now(pipeline);
        if (!pipeline->shared && !exporter_close(pipeline->exporter, &error))
            pipeline_say_error(pipeline, error.text);
        pipeline_settle(pipeline);
    }
    pipeline_look_at_stages(pipeline);
    counts = account_end(pipeline->account, &pipeline->intake.counts,
                         assembler_counts(pipeline->assembler));
    if (pipeline->rules_report)
        pairing_report(pipeline->rules, pipeline->rules_report);
    pipeline->calls.summary(pipeline->calls.context, &counts);
    if (!counts_add_up(&counts) || !chain_adds_up(&pipeline->chain))
        pipeline_say_error(pipeline, "the account does not add up: this is a bug of BlkKin");
}

/* True if all ended well; if not, error is set. */
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

bool pipeline_finish(struct pipeline *pipeline, struct error *error)
{
    pipeline_flush(pipeline);
    pipeline_publish_now(pipeline);
    exporter_flush(pipeline->exporter);
    pipeline_end(pipeline);
    return pipeline_has_delivered(pipeline, error);
}

void pipeline_rest(struct pipeline *pipeline)
{
    pipeline_look_at_statistics(pipeline);
    if (!account_is_due(pipeline->account))
        return;
    pipeline_settle(pipeline);
    pipeline_publish_now(pipeline);
}

bool pipeline_go_on(struct pipeline *pipeline, struct error *error)
{
    struct error cause = {""};

    chain_advance(&pipeline->chain, assembler_now(pipeline->assembler));
    pipeline_rest(pipeline);
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
