/*
 * Every span: rings and SDKs to the pipeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "send_all.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/pipeline.h"
#include "records.h"
#include "tools/base/json.h"
#include "tools/base/reader_account.h"
#include "tools/config/sink_params.h"
#include "tools/rings/follow.h"
#include "tracepoints/format/provider_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALL_GRACE_NS   INT64_C(5000000)
#define ALL_SAMPLES_NS INT64_C(10000000000) /* of before: with their names */

struct send_all {
    struct agent *agent;
    void (*failed)(void *context);
    void *context;
    struct pipeline pipeline;
    struct follow *follow;
    struct timer look;
    struct sampler *sampler; /* NULL: none */
    uint64_t next_sample;
    int64_t samples_from_ns;
    struct span whole; /* of an SDK: its memory is used again */
    int64_t offset_ns;
    uint64_t given; /* events, to the assembler */
    uint64_t foreign, foreign_unreadable;
    bool is_ending, has_said_lost, has_failed;
};

bool send_all_is_wanted(const struct config *config)
{
    return strcmp(config_text(config, "send"), "all") == 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void all_set_origin(const struct send_all *all, struct origin *origin)
{
    origin->host = text_of(all->agent->host);
    origin->clock = all->offset_ns;
    origin->process = (struct text){"", 0};
    origin->tid = 0;
}

static void all_take_event(void *context, struct event *event)
{
    struct send_all *all = context;

    all_set_origin(all, &event->origin);
    all->given++;
    assembler_add(all->pipeline.assembler, event);
}

static void all_take_sample(void *context, const char *payload, size_t length)
{
    struct send_all *all = context;
    const struct ring_entry entry = {
        .event = BLKIN_EVENT_METRIC, .payload = payload, .length = (uint32_t)length};
    const struct ring_clock clock = {INT64_MIN / 2, clock_ns(), all->offset_ns};
    struct event event = {.time_ns = 0};

    if (ring_event(&entry, &clock, &event) == DECODED)
        all_take_event(all, &event);
}

void send_all_set_sampler(struct send_all *all, struct sampler *sampler)
{
    if (sampler != all->sampler)
        all->next_sample = 0;
    all->sampler = sampler;
}

static void all_have_lost(void *context, int64_t begin_ns, int64_t end_ns)
{
    struct send_all *all = context;
    struct loss loss = {.has_times = true, .begin_ns = begin_ns, .end_ns = end_ns};

    all_set_origin(all, &loss.origin);
    assembler_note_loss(all->pipeline.assembler, &loss);
    if (!all->has_said_lost)
        say(BK4070, "events were overwritten before they were read: ring-bytes is too small for "
                    "ring-poll-ms, or this host is too busy; from now on they are only counted");
    all->has_said_lost = true;
}

/* The account has all that was read up to now. */
static void all_count(struct send_all *all, int64_t time_ns)
{
    const struct follow_counts counts = follow_counts(all->follow);
    struct input_counts *input = &all->pipeline.intake.counts;

    input->foreign = counts.foreign;
    input->unreadable = counts.unreadable + all->foreign_unreadable;
    input->newer = counts.newer;
    input->events = all->given + counts.foreign + input->unreadable + counts.newer;
    input->trace_time_ns = time_ns;
}

static void all_fail(struct send_all *all, const struct error *error)
{
    if (!all->has_failed)
        say(BK4071, "%s", error->text);
    all->has_failed = true;
}

static void all_have_read(struct send_all *all, int64_t time_ns)
{
    struct error error;

    assembler_advance(all->pipeline.assembler, time_ns);
    all_count(all, time_ns);
    if (all->has_failed || pipeline_go_on(&all->pipeline, &error))
        return;
    all_fail(all, &error);
    all->failed(all->context);
}

static void all_look(void *context)
{
    struct send_all *all = context;

    all->next_sample =
        sampler_read(all->sampler, all->next_sample, all->samples_from_ns, all_take_sample, all);
    all_have_read(all, follow_look(all->follow));
    timer_set(all->agent->loop, &all->look,
              follow_next_ms(all->follow, config_integer(all->agent->config, "ring-poll-ms")));
}

void send_all_memory_came(struct send_all *all, const struct memory *memory)
{
    if (!follow_add(all->follow, memory, true))
        say(BK4072, "out of memory: rings of %" PRIu64 " bytes are not read", memory->bytes);
}

void send_all_memory_goes(struct send_all *all, const struct memory *memory)
{
    follow_drop(all->follow, memory);
}

void send_all_take_span(struct send_all *all, const struct otlp_origin *origin,
                        const struct otlp_span *span)
{
    if (!records_take_foreign(&all->pipeline, &all->whole, origin, span))
        all->foreign_unreadable++;
    else
        all->foreign++;
}

/* ---- what the pipeline calls ----------------------------------------------------------------- */

static bool all_are_interrupted(void *context)
{
    const struct send_all *all = context;

    return all->is_ending;
}

static void all_say(void *context, bt_logging_level level, const char *message)
{
    (void)context;
    if (level >= BT_LOGGING_LEVEL_ERROR)
        say(BK4075, "%s", message);
    else if (level >= BT_LOGGING_LEVEL_WARNING)
        say(BK4074, "%s", message);
    else
        say(BK4073, "%s", message);
}

static void all_print_summary(void *context, const struct counts *counts)
{
    char line[COUNTS_LINE_MAX];

    (void)context;
    if (say_level() == BT_LOGGING_LEVEL_NONE)
        return;
    counts_line(counts, LINE_WHOLE, line);
    say_account(BK1002, "%s", line);
}

/* ---- what it shows --------------------------------------------------------------------------- */

struct counts send_all_counts(struct send_all *all)
{
    return pipeline_counts(&all->pipeline);
}

json_t *send_all_statistics(struct send_all *all)
{
    char *text = pipeline_statistics(&all->pipeline);
    json_t *document = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;

    free(text);
    return document;
}

json_t *send_all_json(struct send_all *all)
{
    const struct follow_counts read = follow_counts(all->follow);

    return json_pack("{so, sI, sI, sI, sI, sI, sI}", "trace_time",
                     json_time(all->pipeline.intake.counts.trace_time_ns), "records",
                     (json_int_t)read.rings.records, "read_bytes", (json_int_t)read.rings.read,
                     "overwritten_bytes", (json_int_t)read.rings.overwritten, "damaged_bytes",
                     (json_int_t)read.rings.damaged, "jumps", (json_int_t)read.rings.jumps,
                     "otlp_spans", (json_int_t)all->foreign);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static bool all_open_pipeline(struct send_all *all, const struct config *config,
                              struct error *error)
{
    struct pipeline *pipeline = &all->pipeline;
    struct params params;

    if (!config_sink_params(config, &params, error) || !params_fit(&params, error))
        return false;
    params.prometheus_listen = NULL; /* the agent's page has it */
    /* a collector that is away at the start is waited for like one that goes */
    if (strcmp(config_origin(config, "require-collector"), "default") == 0)
        params.exporter.require_collector = false;
    pipeline->calls = (struct pipeline_calls){all_are_interrupted, all_say, all_print_summary, all};
    pipeline->shows_progress = say_level() <= BT_LOGGING_LEVEL_INFO;
    if (!pipeline_open(pipeline, &params, error))
        return false;
    pipeline_set_live(pipeline);
    return true;
}

struct send_all *send_all_open(struct agent *agent, const struct config *config,
                               void (*failed)(void *context), void *context, struct error *error)
{
    const struct follow_calls calls = {all_take_event, all_have_lost, NULL};
    struct send_all *all = calloc(1, sizeof(*all));
    struct follow_calls own = calls;

    if (!all)
        return error_null(error, "out of memory");
    *all = (struct send_all){.agent = agent,
                             .failed = failed,
                             .context = context,
                             .offset_ns = ring_clock_offset(),
                             .samples_from_ns = clock_ns() - ALL_SAMPLES_NS,
                             .look = {.due = all_look, .context = all}};
    own.context = all;
    if (!all_open_pipeline(all, config, error)) {
        free(all);
        return NULL;
    }
    all->follow = follow_new(&own, ALL_GRACE_NS, all->offset_ns);
    if (!all->follow) {
        pipeline_close(&all->pipeline);
        free(all);
        return error_null(error, "out of memory");
    }
    timer_set(agent->loop, &all->look, 0);
    return all;
}

bool send_all_close(struct send_all *all)
{
    struct reader_account run = {.has_ended = true};
    struct error error;
    bool is_delivered;

    if (!all)
        return true;
    timer_clear(all->agent->loop, &all->look);
    all->is_ending = true;
    all_have_read(all, follow_look_at_all(all->follow)); /* nothing, but it is counted */
    pipeline_end(&all->pipeline);
    if (!pipeline_is_stored(&all->pipeline, &error))
        all_fail(all, &error);
    run.counts = pipeline_counts(&all->pipeline);
    counts_hand_over(&run.counts);
    totals_add(&all->agent->totals.readers.sinks, &run);
    is_delivered = !all->has_failed;
    follow_free(all->follow);
    pipeline_close(&all->pipeline);
    free(all->whole.log);
    free(all);
    return is_delivered;
}
