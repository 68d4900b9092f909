/*
 * Sets up a pipeline (the assembler, the stages, the exporter and the account), runs and ends it,
 * and computes the statistics of its spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pipeline.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- the statistics of spans: notices that a client asks, and writes statistics-file --------- */

#define ASKED_MS           10000 /* how long the statistics are computed after a client asked */
#define STATISTICS_POLL_MS 100
#define WRITE_MS           500

/* Replaces the file: readers see the old or the new document, never a part. */
static bool statistics_put(const struct pipeline_statistics *statistics, const char *text)
{
    const int fd = open(statistics->fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write_all(fd, text, strlen(text));

    if (fd >= 0)
        done = close(fd) == 0 && done;
    return done && rename(statistics->fresh, statistics->file) == 0;
}

/* Returns false with error set. */
static bool statistics_write(const struct pipeline_statistics *statistics, struct error *error)
{
    char *text = live_statistics_text(statistics->live);
    bool is_written;

    errno = ENOMEM;
    is_written = (text && statistics_put(statistics, text)) ||
                 error_set(error, "statistics-file \"%.300s\": cannot be written: %s",
                           statistics->file, strerror(errno));
    free(text);
    return is_written;
}

/* Uses the wall clock, because the file system sets the time of PATH.asked by that clock. */
static void statistics_look_at_file(struct pipeline_statistics *statistics, int64_t now_ms)
{
    struct stat asked;
    int64_t age_ms;

    if (stat(statistics->asked, &asked) != 0)
        return;
    age_ms = wall_clock_ns() / 1000000 -
             ((int64_t)asked.st_mtim.tv_sec * 1000 + asked.st_mtim.tv_nsec / 1000000);
    if (age_ms < ASKED_MS)
        statistics->until_ms = now_ms + ASKED_MS - (age_ms > 0 ? age_ms : 0);
}

static void statistics_stop(struct pipeline_statistics *statistics)
{
    live_statistics_free(statistics->live);
    statistics->live = NULL;
    if (statistics->file)
        (void)unlink(statistics->file);
}

static void statistics_advance(struct pipeline_statistics *statistics, int64_t now_ms)
{
    if (statistics->live && !live_statistics_advance(statistics->live, now_ms))
        statistics_stop(statistics);
    if (!statistics->live)
        statistics->live = live_statistics_new();
}

static void pipeline_write_statistics(struct pipeline *pipeline,
                                      struct pipeline_statistics *statistics)
{
    struct error error;

    if (statistics_write(statistics, &error))
        return;
    if (!statistics->has_warned)
        pipeline_warn(pipeline, error.text);
    statistics->has_warned = true;
}

static void pipeline_look_at_statistics(struct pipeline *pipeline)
{
    struct pipeline_statistics *statistics = pipeline->statistics;
    const int64_t now_ms = clock_ms();

    if (now_ms < statistics->next_look_ms)
        return;
    statistics->next_look_ms = now_ms + STATISTICS_POLL_MS;
    if (statistics->file)
        statistics_look_at_file(statistics, now_ms);
    if (now_ms < statistics->until_ms)
        statistics_advance(statistics, now_ms);
    else if (statistics->live)
        statistics_stop(statistics);
    if (!statistics->live || !statistics->file || now_ms < statistics->next_write_ms)
        return;
    statistics->next_write_ms = now_ms + WRITE_MS;
    pipeline_write_statistics(pipeline, statistics);
}

static bool pipeline_open_statistics(struct pipeline *pipeline, const struct params *params,
                                     struct error *error)
{
    struct pipeline_statistics *statistics = &pipeline->own;
    const char *file = params->statistics_file;

    pipeline->statistics = pipeline->shared ? &pipeline->shared->statistics : statistics;
    if (!file || pipeline->shared)
        return true;
    statistics->file = strdup(file);
    statistics->asked = string_joined(file, ".asked");
    statistics->fresh = string_joined(file, ".new");
    if (!statistics->file || !statistics->asked || !statistics->fresh)
        return error_set(error, "out of memory");
    pipeline_look_at_statistics(pipeline);
    return true;
}

char *pipeline_statistics(struct pipeline_statistics *statistics)
{
    statistics->until_ms = clock_ms() + ASKED_MS;
    statistics_advance(statistics, clock_ms());
    return statistics->live ? live_statistics_text(statistics->live) : NULL;
}

/* Called after the last span: clients get the spans of traces that are still open, too. */
static void pipeline_end_statistics(struct pipeline *pipeline)
{
    struct pipeline_statistics *statistics = &pipeline->own;

    if (!statistics->live)
        return;
    live_statistics_close_traces(statistics->live);
    if (statistics->file)
        pipeline_write_statistics(pipeline, statistics);
}

void pipeline_free_statistics(struct pipeline_statistics *statistics)
{
    live_statistics_free(statistics->live);
    statistics->live = NULL;
    free(statistics->file);
    free(statistics->asked);
    free(statistics->fresh);
    statistics->file = NULL;
}

/* ---- counts and marks ------------------------------------------------------------------------ */

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

/* Publishes settling.next once all spans that were given out before this mark have an outcome.
 * Returns false if some have none yet. */
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

#define FLUSH_STEP 1024 /* spans; a step takes well below a millisecond */

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

/* Returns true if the exporter has delivered or stored all spans. If not, sets error. */
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

void pipeline_idle(struct pipeline *pipeline)
{
    pipeline_look_at_statistics(pipeline);
    if (!account_is_due(pipeline->account))
        return;
    pipeline_settle(pipeline);
    pipeline_publish_now(pipeline);
}

bool pipeline_advance(struct pipeline *pipeline, struct error *error)
{
    struct error cause = {""};

    chain_advance(&pipeline->chain, assembler_now(pipeline->assembler));
    pipeline_idle(pipeline);
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

/* ---- set-up ---------------------------------------------------------------------------------- */

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
static void note_sent(void *context, uint64_t spans)
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
        pipeline->choice->kind->free(pipeline->choice); /* the chain does not have the stage */
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

/* Opens no rules if the caller chooses traces: spans of rules are in other traces. */
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
    /* a duplicate of the descriptor: opening /dev/stdout would truncate a file */
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

/* Opens the stages in the order of the chain. */
static bool open_stages(struct pipeline *pipeline, const struct params *params, struct error *error)
{
    error->text[0] = '\0';
    if (pipeline->choice)
        chain_append(&pipeline->chain, pipeline->choice);
    return open_rules(pipeline, params, error) && open_join(pipeline, params, error) &&
           open_hosts(pipeline, params, error) && open_tail(pipeline, params, error);
}

/* Also returns true without the parameter sent-file. */
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
                                     pipeline->settling.is_asked_for ? note_sent : NULL},
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
            .is_filtered = pipeline->choice != NULL,
            .resumed_ns = pipeline->resumed_ns,
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
