/*
 * The stage that holds whole traces. No decision depends on seeds or addresses: the same recording,
 * read again, gives the same decisions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tail_stage.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/model/open_traces.h"
#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/model/tail.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#define TAIL_NAMES_MAX   65536
#define TAIL_NAMES_BYTES ((size_t)16 << 20)
#define TAIL_SPANS_MAX   10000 /* a trace with so many spans is decided immediately */
#define DECIDED_SLOTS    (1U << 17)
/* The interval at which the usual durations are computed again. */
#define PERIOD_NS      INT64_C(1000000000)
#define FILE_LOOK_MS   1000 /* how often the stage looks for a change of the rules */
#define TAIL_VALUE_MAX 1024

struct tail_stage {
    struct stage stage;
    struct tail_options options;
    char *path; /* of the rules */
    struct tail_rules *rules;
    uint64_t fingerprint; /* file_fingerprint() when the file was read */
    int64_t next_look_ms;
    struct names *names;
    struct statistics *statistics;
    int64_t period_end_ns;
    struct open_traces *open;
    struct tail_counts counts;
    uint64_t decided[DECIDED_SLOTS]; /* hashes of the ids; the last bit: the trace was kept */
};

/* ---- decided traces: a newer one replaces an older one */

static uint64_t tail_hash_of(uint64_t trace_id_high, uint64_t trace_id)
{
    return hash_mix(hash_mix(trace_id) ^ trace_id_high);
}

enum decision { UNDECIDED, KEPT, SAMPLED_OUT };

static enum decision tail_decision_of(const struct tail_stage *tail, uint64_t hash)
{
    const uint64_t found = tail->decided[hash >> 1 & (DECIDED_SLOTS - 1)];

    if (!found || found >> 1 != hash >> 1)
        return UNDECIDED;
    return found & 1 ? KEPT : SAMPLED_OUT;
}

/* fnmatch(3) needs a C string: the value is copied, and cut to TAIL_VALUE_MAX - 1 bytes. */
static bool tail_value_fits(const struct span_entry *entry, const char *glob)
{
    const struct text value = span_entry_value(entry);
    char text[TAIL_VALUE_MAX];

    if (!glob)
        return true;
    if (entry->type == SPAN_TAG_INTEGER)
        (void)snprintf(text, sizeof(text), "%" PRId64, entry->integer);
    else
        (void)snprintf(text, sizeof(text), "%.*s", (int)value.length, value.data);
    return fnmatch(glob, text, 0) == 0;
}

static bool tail_has_tag(void *context, const struct trace_span *span, struct text key,
                         const char *glob)
{
    const struct span_entry *entry =
        span_find_tag(&((const struct span_copy *)span->of)->span, key);

    (void)context;
    return entry && tail_value_fits(entry, glob);
}

static struct text tail_own_name(const struct trace_span *span, bool is_service)
{
    const struct span *held = &((const struct span_copy *)span->of)->span;

    return is_service ? held->endpoint->service : span_name(held);
}

/* Passes the trace's first span on, with the tag that has the reason. */
static void tail_pass_first(struct tail_stage *tail, struct span *span, const char *why)
{
    struct span tagged = *span;

    tagged.log = malloc(span->log_length + 1);
    if (!tagged.log) {
        stage_pass(&tail->stage, span);
        return;
    }
    memcpy(tagged.log, span->log, span->log_length);
    tagged.log_capacity = span->log_length;
    assembler_tag(tail->options.assembler, &tagged, "blkin.sampled", text_of(why));
    stage_pass(&tail->stage, &tagged);
    free(tagged.log);
}

static struct span_copy *tail_copy_of(const struct trace_span *span)
{
    return (struct span_copy *)(uintptr_t)span->of;
}

static void tail_pass_trace(struct tail_stage *tail, const struct trace_model *model,
                            uint32_t first, const char *why)
{
    for (uint32_t i = 0; i < model->count; i++) {
        struct span_copy *held = tail_copy_of(&model->spans[i]);

        if (i == first)
            tail_pass_first(tail, &held->span, why);
        else
            stage_pass(&tail->stage, &held->span);
    }
}

static const char *tail_reason(struct tail_stage *tail, const struct closed_trace *closed)
{
    const struct tail_trace trace = {
        .model = closed->model,
        .trace_id = closed->trace_id,
        .has_tag = tail_has_tag,
        .own_name = tail_own_name,
    };
    const char *why;

    if (!closed->is_linked)
        return "no memory to decide";
    why = tail_rules_fit(tail->rules, &trace, tail->statistics);
    for (uint32_t i = 0; i < closed->model->count; i++)
        (void)statistics_add_span(tail->statistics, &closed->model->spans[i]);
    return why;
}

static void tail_decide(void *context, const struct closed_trace *closed)
{
    struct tail_stage *tail = context;
    const struct trace_model *model = closed->model;
    const char *why = tail_reason(tail, closed);
    const uint64_t hash = tail_hash_of(closed->trace_id_high, closed->trace_id);

    tail->decided[hash >> 1 & (DECIDED_SLOTS - 1)] = (hash & ~UINT64_C(1)) | (why != NULL);
    tail->counts.traces_early += closed->is_early;
    if (why) {
        tail->counts.traces_kept++;
        tail_pass_trace(tail, model, closed->is_linked ? model->first_top : 0, why);
    } else {
        tail->counts.traces_sampled_out++;
        for (uint32_t i = 0; i < model->count; i++)
            stage_leave_out(&tail->stage, STAGE_SAMPLED_OUT, &tail_copy_of(&model->spans[i])->span);
    }
    for (uint32_t i = 0; i < model->count; i++)
        free(tail_copy_of(&model->spans[i]));
}

/* Returns false when out of memory. */
static bool tail_hold(struct tail_stage *tail, const struct span *span)
{
    struct trace_span held_span = trace_span_of(span, tail->names);
    struct span_copy *held = span_copy_new(span, 0);

    if (!held)
        return false;
    held_span.of = held;
    tail->counts.names_merged += held_span.service == NAMES_OTHER || held_span.name == NAMES_OTHER;
    if (open_traces_add(tail->open, span->trace_id_high, span->trace_id, &held_span,
                        sizeof(*held) + span->log_length, stage_now(&tail->stage)))
        return true;
    free(held);
    return false;
}

static void tail_advance(struct tail_stage *tail)
{
    const int64_t now_ns = stage_now(&tail->stage);

    if (now_ns >= tail->period_end_ns) {
        if (tail->period_end_ns)
            statistics_begin_period(tail->statistics);
        tail->period_end_ns = now_ns < INT64_MAX - PERIOD_NS ? now_ns + PERIOD_NS : INT64_MAX;
    }
    open_traces_advance(tail->open, now_ns);
}

static struct tail_stage *tail_of(const struct stage *stage)
{
    return (struct tail_stage *)(uintptr_t)stage;
}

static void tail_stage_take(struct stage *stage, struct span *span)
{
    struct tail_stage *tail = tail_of(stage);
    const uint64_t hash = tail_hash_of(span->trace_id_high, span->trace_id);
    enum decision decision;

    tail_advance(tail);
    decision = tail_decision_of(tail, hash);
    if (decision == UNDECIDED && tail_hold(tail, span))
        return;
    tail->counts.spans_late += decision != UNDECIDED;
    tail->counts.spans_unheld += decision == UNDECIDED;
    if (decision == SAMPLED_OUT)
        stage_leave_out(stage, STAGE_SAMPLED_OUT, span);
    else
        stage_pass(stage, span);
}

static bool tail_stage_flush_some(struct stage *stage, unsigned traces)
{
    return open_traces_close_some(tail_of(stage)->open, traces);
}

static uint64_t tail_stage_held(const struct stage *stage)
{
    return open_traces_counts(tail_of(stage)->open).open_spans;
}

/* ---- the file of rules */

static void tail_read_again(struct tail_stage *tail)
{
    struct error message, error = {""};
    struct tail_rules *rules = tail_rules_read(tail->path, &error);

    if (rules) {
        tail_rules_free(tail->rules);
        tail->rules = rules;
        error_set(&message,
                  "the rules of tail sampling in \"%.300s\" have changed: the new rules apply",
                  tail->path);
    } else {
        error_set(&message, "%s; the old rules still apply", error.text);
    }
    tail->options.warn(tail->options.context, message.text);
}

/* A missing file is ignored, because it may be about to be replaced. */
static void tail_check_file(struct tail_stage *tail)
{
    uint64_t fingerprint;

    if (clock_ms() < tail->next_look_ms)
        return;
    tail->next_look_ms = clock_ms() + FILE_LOOK_MS;
    fingerprint = file_fingerprint(tail->path);
    if (!fingerprint || fingerprint == tail->fingerprint)
        return;
    tail->fingerprint = fingerprint;
    tail_read_again(tail);
}

static void tail_stage_advance(struct stage *stage)
{
    struct tail_stage *tail = tail_of(stage);

    tail_advance(tail);
    tail_check_file(tail);
}

/* ---- set-up */

struct tail_counts tail_stage_counts(const struct stage *stage)
{
    const struct tail_stage *tail = tail_of(stage);
    const struct open_traces_counts open = open_traces_counts(tail->open);
    struct tail_counts counts = tail->counts;

    counts.traces_held = open.open;
    counts.held_bytes = open.open_bytes;
    return counts;
}

static bool tail_read_rules(struct tail_stage *tail, struct error *error)
{
    tail->path = strdup(tail->options.rules);
    if (!tail->path)
        return error_set(error, "out of memory");
    tail->fingerprint = file_fingerprint(tail->path);
    tail->rules = tail_rules_read(tail->path, error);
    return tail->rules != NULL;
}

static bool tail_set_up(struct tail_stage *tail, struct error *error)
{
    const struct tail_options *options = &tail->options;

    if (!tail_read_rules(tail, error))
        return false;
    tail->names = names_new(TAIL_NAMES_MAX, TAIL_NAMES_BYTES);
    if (tail->names)
        tail->statistics = statistics_new(tail->names);
    if (tail->statistics)
        tail->open = open_traces_new(
            &(struct open_traces_options){.quiet = (uint64_t)options->wait_ms * 1000000,
                                          .max_bytes = (size_t)options->max_bytes,
                                          .max_spans = TAIL_SPANS_MAX,
                                          .close = tail_decide,
                                          .context = tail});
    return tail->open || error_set(error, "out of memory");
}

static void tail_free_trace(const struct trace_span *spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(tail_copy_of(&spans[i]));
}

static void tail_stage_free(struct stage *stage)
{
    struct tail_stage *tail = tail_of(stage);

    if (tail->open)
        open_traces_each(tail->open, tail_free_trace);
    open_traces_free(tail->open);
    statistics_free(tail->statistics);
    names_free(tail->names);
    tail_rules_free(tail->rules);
    free(tail->path);
    free(tail);
}

static const struct stage_kind tail_stage_kind = {
    .name = "tail",
    .take = tail_stage_take,
    .advance = tail_stage_advance,
    .flush_some = tail_stage_flush_some,
    .held = tail_stage_held,
    .free = tail_stage_free,
};

struct stage *tail_stage_new(const struct tail_options *options, struct error *error)
{
    struct tail_stage *tail = calloc(1, sizeof(*tail));

    if (!tail)
        return error_null(error, "out of memory");
    tail->stage.kind = &tail_stage_kind;
    tail->options = *options;
    if (tail_set_up(tail, error))
        return &tail->stage;
    tail_stage_free(&tail->stage);
    return NULL;
}
