/*
 * Setting up a pipeline: the assembler, the stages, the checkpoint, the exporter and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pipeline.h"

#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The first stage, where only some traces are wanted. */
static bool only_skips(void *context, struct span *span)
{
    struct pipeline *pipeline = context;

    only_note(pipeline->only, span);
    if (only_was_sent(pipeline->only, span))
        return true;
    assembler_tag(pipeline->assembler, span, "blkin.kept",
                  only_why(pipeline->only, span->trace_id_high, span->trace_id));
    return false;
}

static void take_span(void *context, struct span *span)
{
    struct pipeline *pipeline = context;

    chain_take(&pipeline->chain, span, assembler_now(pipeline->assembler));
}

static void export_span(void *context, const struct span *span)
{
    struct pipeline *pipeline = context;

    exporter_add(pipeline->exporter, span);
}

static void use_metric(void *context, const struct event *event, int64_t time_ns)
{
    struct pipeline *pipeline = context;

    hosts_stage_add(pipeline->hosts, event, time_ns, assembler_now(pipeline->assembler));
}

/* On the sender's thread. */
static void note_settled(void *context, const struct exporter_counts *counts, uint64_t settled)
{
    struct pipeline *pipeline = context;

    checkpoint_settle(pipeline->checkpoint, counts, settled);
}

static void pipeline_inform(void *context, const char *message)
{
    const struct pipeline *pipeline = context;

    pipeline->calls.say(pipeline->calls.context, BT_LOGGING_LEVEL_INFO, message);
}

void pipeline_warn(void *context, const char *message)
{
    const struct pipeline *pipeline = context;

    pipeline->calls.say(pipeline->calls.context, BT_LOGGING_LEVEL_WARNING, message);
}

static struct exporter_counts delivery_counts(void *context)
{
    struct pipeline *pipeline = context;

    return pipeline->exporter ? exporter_counts(pipeline->exporter)
                              : (struct exporter_counts){.spans = 0};
}

void pipeline_close(struct pipeline *pipeline)
{
    account_free(pipeline->account); /* shows the exporter's counters */
    if (pipeline->rules_report)
        fclose(pipeline->rules_report);
    chain_free(&pipeline->chain);
    exporter_free(pipeline->exporter);
    checkpoint_free(pipeline->checkpoint);
    assembler_free(pipeline->assembler);
    only_free(pipeline->only);
}

static bool open_account(struct pipeline *pipeline, const struct params *params,
                         struct error *error)
{
    pipeline->account = account_open(
        &(struct account_options){.endpoint = exporter_endpoint(&params->exporter),
                                  .stats_file = params->stats_file,
                                  .listen = params->prometheus_listen,
                                  .period_ms = params->stats_period_ms,
                                  .shows_progress = pipeline->shows_progress},
        &(struct account_callbacks){delivery_counts, pipeline_inform, pipeline_warn, pipeline},
        error);
    return pipeline->account != NULL;
}

/* Returns true also if all traces are wanted. */
static bool open_only(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    if (!params->only_traces)
        return true;
    pipeline->only = only_open(params->only_traces, params->only_found, error);
    return pipeline->only != NULL;
}

static bool pipeline_append(struct pipeline *pipeline, struct stage *stage, struct error *error)
{
    if (stage)
        chain_append(&pipeline->chain, stage);
    else if (!error->text[0])
        error_set(error, "out of memory");
    return stage != NULL;
}

static void use_rule_event(void *context, const struct event *event)
{
    struct pipeline *pipeline = context;

    pairing_take(pipeline->rules, event);
}

/*
 * The first stage. It is there also without rules: what a run with them has left open is in the
 * checkpoint. What rules make is in no trace that was chosen before.
 */
static bool open_rules(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    const bool has_rules = params->rules && !params->only_traces;
    struct rules *rules = has_rules ? rules_read(params->rules, error) : NULL;

    if (has_rules && !rules)
        return false;
    pipeline->rules =
        pairing_new(&(struct pairing_options){.rules = rules,
                                              .max_open = (uint64_t)params->max_open_spans,
                                              .max_open_bytes = (uint64_t)params->max_open_bytes});
    if (!pipeline_append(pipeline, pipeline->rules, error))
        return false;
    pairing_set_assembler(pipeline->rules, pipeline->assembler);
    if (!params->rules_report)
        return true;
    /* not /dev/stdout, which would be cut where it is a file */
    pipeline->rules_report = strcmp(params->rules_report, "-") == 0
                                 ? fdopen(dup(STDOUT_FILENO), "w")
                                 : fopen(params->rules_report, "we");
    if (!pipeline->rules_report)
        error_set(error, "rules-report \"%s\": cannot be written: %s", params->rules_report,
                  strerror(errno));
    return pipeline->rules_report && pairing_keep_examples(pipeline->rules);
}

static struct stage *new_join(const struct params *params)
{
    struct stage *stage =
        join_stage_new(&(struct join_options){.wait_ns = params->join_wait_ms * 1000000,
                                              .root_wait_ns = params->open_timeout_ms * 1000000,
                                              .skew_ns = params->join_skew_us * 1000,
                                              .max_bytes = (uint64_t)params->join_max_bytes});

    if (stage)
        stage->is_off = params->join_wait_ms <= 0;
    return stage;
}

/* Of traces that were chosen by a rule or by hand, every span is of interest. */
static struct stage *new_hosts(const struct params *params)
{
    const int64_t min_ms = params->only_traces ? 0 : params->host_min_ms;
    struct stage *stage =
        hosts_stage_new(&(struct hosts_options){.min_ns = min_ms * 1000000,
                                                .max_history_bytes = HOSTS_HISTORY_BYTES,
                                                .max_held_bytes = HOSTS_HELD_BYTES});

    if (stage)
        stage->is_off = params->host_min_ms < 0;
    return stage;
}

/* But for the last one, which needs the checkpoint, which needs these. */
static bool open_stages(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    error->text[0] = '\0';
    if (!open_rules(pipeline, params, error))
        return false;
    if (pipeline->only &&
        !pipeline_append(pipeline, skip_stage_new("only", only_skips, pipeline), error))
        return false;
    pipeline->join = new_join(params);
    if (!pipeline_append(pipeline, pipeline->join, error))
        return false;
    pipeline->hosts = new_hosts(params);
    if (!pipeline_append(pipeline, pipeline->hosts, error))
        return false;
    pipeline->tail = tail_stage_new(
        &(struct tail_options){.rules = params->only_traces ? NULL : params->tail_sampling,
                               .wait_ms = params->tail_wait_ms,
                               .max_bytes = params->tail_max_bytes,
                               .assembler = pipeline->assembler,
                               .warn = pipeline_warn,
                               .context = pipeline},
        error);
    return pipeline_append(pipeline, pipeline->tail, error);
}

/* Returns true also if there is none. */
static bool open_checkpoint(struct pipeline *pipeline, const struct params *params,
                            struct error *error)
{
    if (!params->checkpoint)
        return true;
    pipeline->checkpoint =
        checkpoint_open(&(struct checkpoint_options){.path = params->checkpoint,
                                                     .trace = params->checkpoint_trace,
                                                     .flush = params->checkpoint_flush,
                                                     .is_again = params->checkpoint_again,
                                                     .period_ms = params->stats_period_ms},
                        &(struct checkpoint_callbacks){pipeline_warn, pipeline},
                        pipeline->assembler, &pipeline->chain, error);
    if (!pipeline->checkpoint)
        return false;
    pipeline->hold = checkpoint_hold(pipeline->checkpoint);
    pipeline->flushes = !pipeline->hold || params->checkpoint_flush;
    pipeline->until_ns = params->checkpoint_until * 1000000000;
    return !pipeline->hold ||
           pipeline_append(pipeline, skip_stage_new("skip", checkpoint_skips, pipeline->checkpoint),
                           error);
}

static bool pipeline_is_interrupted(void *context)
{
    const struct pipeline *pipeline = context;

    return pipeline->calls.interrupted(pipeline->calls.context);
}

static bool open_exporter(struct pipeline *pipeline, const struct params *params,
                          struct error *error)
{
    if (pipeline->hold && checkpoint_is_done(pipeline->checkpoint)) {
        pipeline_inform(pipeline, "an earlier run has delivered this trace: nothing to do");
        chain_hand_over(&pipeline->chain);
        return true;
    }
    pipeline->exporter =
        exporter_new(&params->exporter,
                     &(struct exporter_callbacks){pipeline_is_interrupted, pipeline_warn, pipeline,
                                                  pipeline->hold ? note_settled : NULL},
                     error);
    return pipeline->exporter != NULL;
}

bool pipeline_open(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    if (!open_only(pipeline, params, error))
        return false;
    pipeline->assembler = assembler_new(
        &(struct assembler_options){
            .idle_timeout_ns = params->idle_timeout_ms * 1000000,
            .end_timeout_ns = params->end_timeout_ms * 1000000,
            .open_timeout_ns = params->open_timeout_ms * 1000000,
            .max_open_spans = (uint64_t)params->max_open_spans,
            .max_open_bytes = (uint64_t)params->max_open_bytes,
            .correct_clocks = params->clock_correction,
            .wall_clock_ns = pipeline->only ? only_clock(pipeline->only) : 0,
            .is_choice = pipeline->only != NULL,
            .closing = params->closing,
            .metric = use_metric,
            .rule = use_rule_event,
        },
        take_span, pipeline);
    if (!pipeline->assembler)
        return error_set(error, "out of memory");
    pipeline->flushes = true;
    chain_init(&pipeline->chain, export_span, pipeline);
    if (!open_stages(pipeline, params, error) || !open_checkpoint(pipeline, params, error))
        return false;
    return open_exporter(pipeline, params, error) && open_account(pipeline, params, error);
}
