/*
 * Sets up a pipeline: the assembler, the stages, the exporter and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pipeline.h"

#include "babeltrace-plugin/base/thread.h"
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void take_span(void *context, struct span *span)
{
    struct pipeline *pipeline = context;

    chain_take(&pipeline->chain, span, assembler_now(pipeline->assembler));
}

static void export_span(void *context, const struct span *span)
{
    struct pipeline *pipeline = context;

    if (pipeline->statistics->live)
        live_statistics_add(pipeline->statistics->live, span);
    exporter_add(pipeline->exporter, span);
}

static void use_metric(void *context, const struct event *event, int64_t time_ns)
{
    struct pipeline *pipeline = context;

    if (pipeline->hosts)
        hosts_stage_add(pipeline->hosts, event, time_ns, assembler_now(pipeline->assembler));
}

/* Called by a sender's thread. The kernel has the number even if this process is killed. */
static void note_taken(void *context, uint64_t spans)
{
    struct settling *settling = &((struct pipeline *)context)->settling;

    LOCK_GUARD(&settling->lock);
    if (spans <= atomic_load(&settling->sent))
        return; /* another thread has noted more */
    atomic_store(&settling->sent, spans);
    if (pwrite(settling->fd, &spans, sizeof(spans), 0) != (ssize_t)sizeof(spans))
        pipeline_warn(context, "sent-file: cannot be written");
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

    return pipeline->exporter && !pipeline->shared ? exporter_counts(pipeline->exporter)
                                                   : (struct exporter_counts){.spans = 0};
}

void pipeline_close(struct pipeline *pipeline)
{
    account_free(pipeline->account); /* shows the exporter's counters */
    pipeline_free_statistics(&pipeline->own);
    if (pipeline->rules_report)
        fclose(pipeline->rules_report);
    if (pipeline->choice && !pipeline->choice->chain)
        pipeline->choice->kind->free(pipeline->choice); /* it never came into the chain */
    chain_free(&pipeline->chain);
    if (!pipeline->shared)
        exporter_free(pipeline->exporter);
    assembler_free(pipeline->assembler);
    if (pipeline->settling.is_asked_for)
        (void)close(pipeline->settling.fd);
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

/* The spans of rules are in no trace that the caller has chosen. */
static bool open_rules(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    struct rules *rules;

    if (!params->rules || pipeline->choice)
        return true;
    rules = rules_read(params->rules, error);
    if (!rules)
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
    /* not /dev/stdout: if that is a file, it would be truncated */
    pipeline->rules_report = strcmp(params->rules_report, "-") == 0
                                 ? fdopen(dup(STDOUT_FILENO), "w")
                                 : fopen(params->rules_report, "we");
    if (!pipeline->rules_report)
        error_set(error, "rules-report \"%s\": cannot be written: %s", params->rules_report,
                  strerror(errno));
    return pipeline->rules_report && pairing_store_examples(pipeline->rules);
}

static bool open_join(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    if (params->join_wait_ms <= 0)
        return true;
    pipeline->join =
        join_stage_new(&(struct join_options){.wait_ns = params->join_wait_ms * 1000000,
                                              .root_wait_ns = params->open_timeout_ms * 1000000,
                                              .skew_ns = params->join_skew_us * 1000,
                                              .max_bytes = (uint64_t)params->join_max_bytes});
    return pipeline_append(pipeline, pipeline->join, error);
}

static bool open_hosts(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    const int64_t min_ms = pipeline->choice ? 0 : params->host_min_ms;

    if (params->host_min_ms < 0)
        return true;
    pipeline->hosts =
        hosts_stage_new(&(struct hosts_options){.min_ns = min_ms * 1000000,
                                                .max_history_bytes = HOSTS_HISTORY_BYTES,
                                                .max_held_bytes = HOSTS_HELD_BYTES});
    return pipeline_append(pipeline, pipeline->hosts, error);
}

static bool open_tail(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    if (!params->tail_sampling || pipeline->choice)
        return true;
    pipeline->tail = tail_stage_new(&(struct tail_options){.rules = params->tail_sampling,
                                                           .wait_ms = params->tail_wait_ms,
                                                           .max_bytes = params->tail_max_bytes,
                                                           .assembler = pipeline->assembler,
                                                           .warn = pipeline_warn,
                                                           .context = pipeline},
                                    error);
    return pipeline_append(pipeline, pipeline->tail, error);
}

/* In the order of the chain. */
static bool open_stages(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    error->text[0] = '\0';
    if (pipeline->choice)
        chain_append(&pipeline->chain, pipeline->choice);
    return open_rules(pipeline, params, error) && open_join(pipeline, params, error) &&
           open_hosts(pipeline, params, error) && open_tail(pipeline, params, error);
}

/* Also returns true if no mark is wanted. */
static bool open_settling(struct pipeline *pipeline, const struct params *params,
                          struct error *error)
{
    struct settling *settling = &pipeline->settling;

    if (!params->sent_file)
        return true;
    settling->fd = open(params->sent_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    settling->next.at = (struct trace_position){params->from_time, (uint64_t)params->from_events};
    settling->marks.ring[0] = pipeline->intake.counts.settled = settling->next;
    settling->is_asked_for = settling->fd >= 0;
    if (settling->is_asked_for)
        pthread_mutex_init(&settling->lock, NULL);
    return settling->is_asked_for || error_set(error, "sent-file \"%s\": cannot be written: %s",
                                               params->sent_file, strerror(errno));
}

static bool pipeline_is_interrupted(void *context)
{
    const struct pipeline *pipeline = context;

    return pipeline->calls.interrupted(pipeline->calls.context);
}

static bool open_exporter(struct pipeline *pipeline, const struct params *params,
                          struct error *error)
{
    if (pipeline->shared) {
        pipeline->exporter = pipeline->shared->exporter;
        return true;
    }
    pipeline->exporter = exporter_new(
        &params->exporter,
        &(struct exporter_callbacks){pipeline_is_interrupted, pipeline_warn, pipeline,
                                     pipeline->settling.is_asked_for ? note_taken : NULL},
        error);
    return pipeline->exporter != NULL;
}

bool pipeline_open(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    if (!open_settling(pipeline, params, error) ||
        !pipeline_open_statistics(pipeline, params, error))
        return false;
    pipeline->assembler = assembler_new(
        &(struct assembler_options){
            .idle_timeout_ns = params->idle_timeout_ms * 1000000,
            .end_timeout_ns = params->end_timeout_ms * 1000000,
            .open_timeout_ns = params->open_timeout_ms * 1000000,
            .max_open_spans = (uint64_t)params->max_open_spans,
            .max_open_bytes = (uint64_t)params->max_open_bytes,
            .correct_clocks = params->clock_correction,
            .wall_clock_ns = pipeline->wall_clock_ns,
            .is_choice = pipeline->choice != NULL,
            .marks = pipeline->settling.is_asked_for ? &pipeline->settling.marks : pipeline->marks,
            .closing = params->closing,
            .endpoints = pipeline->shared ? pipeline->shared->endpoints : NULL,
            .metric = use_metric,
            .rule = use_rule_event,
        },
        take_span, pipeline);
    if (!pipeline->assembler)
        return error_set(error, "out of memory");
    chain_init(&pipeline->chain, export_span, pipeline);
    pipeline->chain.marks = assembler_marks(pipeline->assembler);
    if (!open_stages(pipeline, params, error))
        return false;
    return open_exporter(pipeline, params, error) && open_account(pipeline, params, error);
}
