/*
 * The stage that holds spans.
 *
 * Nothing that decides depends on seeds or addresses: the same trace read again is sampled alike.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sampler.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/model/open_traces.h"
#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/model/tail.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NAMES_MAX      65536
#define NAMES_BYTES    ((size_t)16 << 20)
#define SPANS_MAX      10000 /* of one trace: one that never ends is decided with so many */
#define DECIDED_PLACES (1U << 17)
#define PERIOD_NS      INT64_C(1000000000) /* after which what is usual is found out anew */
#define FILE_LOOK_MS   1000
#define VALUE_MAX      1024

struct sampler {
    struct sampler_options options;
    char *path; /* of the rules */
    struct assembler *assembler;
    struct exporter *exporter;
    void (*warn)(void *context, const char *message);
    void *context;
    struct tail_rules *rules;
    struct stat file; /* as it was when it was read */
    int64_t next_look_ms;
    struct names *names;
    struct statistics *statistics;
    int64_t period_end_ns;
    struct open_traces *open;
    struct sampler_counts counts;
    uint64_t decided[DECIDED_PLACES]; /* hashes of the ids; the last bit: it was kept */
};

/* ---- decided traces: the newer one takes the place of the older one */

static uint64_t hash_of(uint64_t trace_id_high, uint64_t trace_id)
{
    return hash_mix(hash_mix(trace_id) ^ trace_id_high);
}

static void remember(struct sampler *sampler, uint64_t hash, bool is_kept)
{
    sampler->decided[hash >> 1 & (DECIDED_PLACES - 1)] = (hash & ~UINT64_C(1)) | is_kept;
}

enum decision { UNDECIDED, KEPT, SAMPLED_OUT };

static enum decision decision_of(const struct sampler *sampler, uint64_t hash)
{
    const uint64_t found = sampler->decided[hash >> 1 & (DECIDED_PLACES - 1)];

    if (!found || found >> 1 != hash >> 1)
        return UNDECIDED;
    return found & 1 ? KEPT : SAMPLED_OUT;
}

/* ---- deciding */

/* A glob wants a string; a value that is longer is looked at as far as that goes. */
static bool value_fits(const struct span_entry *entry, const char *glob)
{
    const struct text value = span_entry_value(entry);
    char text[VALUE_MAX];

    if (!glob)
        return true;
    if (entry->type == SPAN_TAG_INTEGER)
        (void)snprintf(text, sizeof(text), "%" PRId64, entry->integer);
    else
        (void)snprintf(text, sizeof(text), "%.*s", (int)value.length, value.data);
    return fnmatch(glob, text, 0) == 0;
}

static const struct span_entry *find_tag(const struct span *span, struct text key)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if ((entry->type == SPAN_TAG_TEXT || entry->type == SPAN_TAG_INTEGER) &&
            text_equal(span_entry_key(entry), key))
            return entry;
    }
    return NULL;
}

static bool has_tag(void *context, const struct trace_span *span, struct text key, const char *glob)
{
    const struct span_entry *entry = find_tag(&((const struct kept_span *)span->of)->span, key);

    (void)context;
    return entry && value_fits(entry, glob);
}

/* With the tag that says why. */
static void deliver_first(struct sampler *sampler, const struct span *span, const char *why)
{
    struct span tagged = *span;

    tagged.log = malloc(span->log_length + 1);
    if (!tagged.log) {
        exporter_add(sampler->exporter, span);
        return;
    }
    memcpy(tagged.log, span->log, span->log_length);
    tagged.log_capacity = span->log_length;
    assembler_tag(sampler->assembler, &tagged, "blkin.sampled", text_of(why));
    exporter_add(sampler->exporter, &tagged);
    free(tagged.log);
}

static void deliver(struct sampler *sampler, const struct trace_model *model, uint32_t first,
                    const char *why)
{
    for (uint32_t i = 0; i < model->count; i++) {
        const struct kept_span *held = model->spans[i].of;

        if (i == first)
            deliver_first(sampler, &held->span, why);
        else
            exporter_add(sampler->exporter, &held->span);
    }
}

static const char *reason(struct sampler *sampler, const struct closed_trace *closed)
{
    const struct tail_trace trace = {
        .model = closed->model,
        .trace_id_high = closed->trace_id_high,
        .trace_id = closed->trace_id,
        .has_tag = has_tag,
    };
    const char *why;

    if (!closed->is_linked)
        return "no memory to decide";
    why = tail_rules_fit(sampler->rules, &trace, sampler->statistics);
    (void)statistics_add_trace(sampler->statistics, closed->model);
    return why;
}

static void decide(void *context, const struct closed_trace *closed)
{
    struct sampler *sampler = context;
    const struct trace_model *model = closed->model;
    const char *why = reason(sampler, closed);

    remember(sampler, hash_of(closed->trace_id_high, closed->trace_id), why != NULL);
    sampler->counts.traces_early += closed->is_early;
    exporter_release(sampler->exporter, model->count);
    if (why) {
        sampler->counts.traces_kept++;
        deliver(sampler, model, closed->is_linked ? model->first_top : 0, why);
    } else {
        sampler->counts.traces_sampled_out++;
        exporter_sample_out(sampler->exporter, model->count);
    }
    for (uint32_t i = 0; i < model->count; i++)
        free((void *)(uintptr_t)model->spans[i].of);
}

/* ---- holding */

static struct trace_span for_model(struct sampler *sampler, const struct span *span)
{
    return (struct trace_span){
        .id = span->id,
        .parent_id = span->parent_id,
        .start_ns = span->start_ns,
        .duration_ns = span->end_ns - span->start_ns,
        .service = names_id(sampler->names, span->endpoint->service),
        .name = names_id(sampler->names, span_name(span)),
        .remote_service =
            span->remote ? names_id(sampler->names, span->remote->service) : NAMES_NONE,
        .kind = (uint8_t)span->kind,
        .is_error = find_tag(span, text_of("error")) != NULL,
        .is_shared = span->shared,
    };
}

/* Returns false when out of memory. */
static bool hold(struct sampler *sampler, const struct span *span, bool is_held)
{
    struct trace_span held_span = for_model(sampler, span);
    struct kept_span *held = span_keep(span, 0);

    if (!held)
        return false;
    held_span.of = held;
    if (!is_held)
        exporter_hold(sampler->exporter);
    if (open_traces_add(sampler->open, span->trace_id_high, span->trace_id, &held_span,
                        sizeof(*held) + span->log_length, assembler_now(sampler->assembler)))
        return true;
    if (!is_held)
        exporter_release(sampler->exporter, 1);
    free(held);
    return false;
}

static void begin_period(struct sampler *sampler, int64_t now_ns)
{
    if (now_ns < sampler->period_end_ns)
        return;
    if (sampler->period_end_ns)
        statistics_begin_period(sampler->statistics);
    sampler->period_end_ns = now_ns < INT64_MAX - PERIOD_NS ? now_ns + PERIOD_NS : INT64_MAX;
}

static void close_complete(struct sampler *sampler)
{
    const int64_t now_ns = assembler_now(sampler->assembler);

    begin_period(sampler, now_ns);
    open_traces_advance(sampler->open, now_ns);
}

void sampler_add(struct sampler *sampler, const struct span *span, bool is_held)
{
    const uint64_t hash = hash_of(span->trace_id_high, span->trace_id);
    enum decision decision;

    close_complete(sampler);
    decision = decision_of(sampler, hash);
    if (decision == UNDECIDED && hold(sampler, span, is_held))
        return;
    if (is_held)
        exporter_release(sampler->exporter, 1);
    sampler->counts.spans_late += decision != UNDECIDED;
    sampler->counts.spans_unheld += decision == UNDECIDED;
    if (decision == SAMPLED_OUT)
        exporter_sample_out(sampler->exporter, 1);
    else
        exporter_add(sampler->exporter, span);
}

bool sampler_flush_some(struct sampler *sampler, unsigned traces)
{
    return open_traces_close_some(sampler->open, traces);
}

/* ---- the file */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void read_again(struct sampler *sampler)
{
    struct error message, error = {""};
    struct tail_rules *rules = tail_rules_read(sampler->path, &error);

    if (rules) {
        tail_rules_free(sampler->rules);
        sampler->rules = rules;
        error_set(&message, "the rules of tail sampling in \"%.300s\" have changed, and hold now",
                  sampler->path);
    } else {
        sampler->counts.rules_errors++;
        error_set(&message, "%s; the rules of before still hold", error.text);
    }
    sampler->warn(sampler->context, message.text);
}

/* One that is gone may be about to be replaced. */
static void look_after_file(struct sampler *sampler)
{
    struct stat file;

    if (clock_ms() < sampler->next_look_ms)
        return;
    sampler->next_look_ms = clock_ms() + FILE_LOOK_MS;
    if (stat(sampler->path, &file) < 0 || is_same_file(&file, &sampler->file))
        return;
    sampler->file = file;
    read_again(sampler);
}

void sampler_advance(struct sampler *sampler)
{
    close_complete(sampler);
    look_after_file(sampler);
}

/* ---- beginning and end */

struct sampler_counts sampler_counts(const struct sampler *sampler)
{
    const struct open_traces_counts open = open_traces_counts(sampler->open);
    struct sampler_counts counts = sampler->counts;

    counts.traces_held = open.open;
    counts.held_bytes = open.open_bytes;
    return counts;
}

static bool set_up(struct sampler *sampler, struct error *error)
{
    const struct sampler_options *options = &sampler->options;

    sampler->path = strdup(options->rules);
    if (!sampler->path) {
        error_set(error, "out of memory");
        return false;
    }
    (void)stat(sampler->path, &sampler->file);
    sampler->rules = tail_rules_read(sampler->path, error);
    if (!sampler->rules)
        return false;
    sampler->names = names_new(NAMES_MAX, NAMES_BYTES);
    if (sampler->names)
        sampler->statistics = statistics_new(sampler->names);
    if (sampler->statistics)
        sampler->open = open_traces_new(
            &(struct open_traces_options){.quiet = (uint64_t)options->wait_ms * 1000000,
                                          .max_bytes = (size_t)options->max_bytes,
                                          .max_spans = SPANS_MAX,
                                          .close = decide,
                                          .context = sampler});
    if (!sampler->open)
        error_set(error, "out of memory");
    return sampler->open != NULL;
}

struct sampler *sampler_new(const struct sampler_options *options, struct assembler *assembler,
                            struct exporter *exporter, void (*warn)(void *, const char *),
                            void *context, struct error *error)
{
    struct sampler *sampler = calloc(1, sizeof(*sampler));

    if (!sampler) {
        error_set(error, "out of memory");
        return NULL;
    }
    sampler->options = *options;
    sampler->assembler = assembler;
    sampler->exporter = exporter;
    sampler->warn = warn;
    sampler->context = context;
    if (set_up(sampler, error))
        return sampler;
    sampler_free(sampler);
    return NULL;
}

/* What is held at the end has been flushed: see sink.c. */
void sampler_free(struct sampler *sampler)
{
    if (!sampler)
        return;
    open_traces_free(sampler->open);
    statistics_free(sampler->statistics);
    names_free(sampler->names);
    tail_rules_free(sampler->rules);
    free(sampler->path);
    free(sampler);
}
