/*
 * Gives the events of rings and the spans of SDKs to a pipeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "send_all.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "export.h"
#include "tools/base/json.h"
#include "tools/rings/follow.h"
#include "tracepoints/format/provider_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALL_GRACE_NS   INT64_C(5000000)
#define ALL_SAMPLES_NS INT64_C(10000000000) /* also takes samples from so long before the start */

struct send_all {
    struct agent *agent;
    struct pipeline pipeline;
    struct follow *follow;
    struct timer look;
    struct sampler *sampler; /* NULL: none */
    uint64_t next_sample;
    int64_t samples_from_ns;
    struct span whole; /* reused for each span of an SDK */
    int64_t offset_ns;
    uint64_t given;          /* number of events given to the assembler */
    uint64_t sdk_unreadable; /* number of spans of SDKs that could not be read */
    uint64_t sdk_spans;
    bool has_said_lost;
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

static void all_note_loss(void *context, int64_t begin_ns, int64_t end_ns)
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

/* Sets the pipeline's counts of events. */
static void all_count(struct send_all *all, int64_t time_ns)
{
    const struct follow_counts counts = follow_counts(all->follow);
    struct input_counts *input = &all->pipeline.intake.counts;

    input->foreign = counts.foreign;
    input->unreadable = counts.unreadable + all->sdk_unreadable;
    input->newer = counts.newer;
    input->events = all->given + counts.foreign + input->unreadable + counts.newer;
    input->trace_time_ns = time_ns;
}

/* Advances the pipeline to the time up to which all records were read. */
static void all_advance(struct send_all *all, int64_t time_ns)
{
    struct error ignored; /* the export checks the exporter itself */

    assembler_advance(all->pipeline.assembler, time_ns);
    all_count(all, time_ns);
    (void)pipeline_go_on(&all->pipeline, &ignored);
    (void)export_check(all->agent->export);
}

static void all_look(void *context)
{
    struct send_all *all = context;

    all->next_sample =
        sampler_read(all->sampler, all->next_sample, all->samples_from_ns, all_take_sample, all);
    all_advance(all, follow_look(all->follow));
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
    const uint64_t before = all->pipeline.intake.counts.unreadable;

    export_take_sdk_span(&all->pipeline, &all->whole, origin, span);
    all->sdk_unreadable += all->pipeline.intake.counts.unreadable - before;
    all->sdk_spans++;
}

/* ---- status ---------------------------------------------------------------------------------- */

json_t *send_all_json(struct send_all *all)
{
    const struct follow_counts read = follow_counts(all->follow);

    return json_pack("{so, sI, sI, sI, sI, sI, sI}", "trace_time",
                     json_time(all->pipeline.intake.counts.trace_time_ns), "records",
                     (json_int_t)read.rings.records, "read_bytes", (json_int_t)read.rings.read,
                     "overwritten_bytes", (json_int_t)read.rings.overwritten, "damaged_bytes",
                     (json_int_t)read.rings.damaged, "jumps", (json_int_t)read.rings.jumps,
                     "otlp_spans", (json_int_t)all->sdk_spans);
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct send_all *send_all_open(struct agent *agent, struct error *error)
{
    struct send_all *all = calloc(1, sizeof(*all));
    const struct follow_calls calls = {all_take_event, all_note_loss, all};

    if (!all)
        return error_null(error, "out of memory");
    *all = (struct send_all){.agent = agent,
                             .offset_ns = ring_clock_offset(),
                             .samples_from_ns = clock_ns() - ALL_SAMPLES_NS,
                             .look = {.due = all_look, .context = all}};
    if (export_open_pipeline(agent->export, &all->pipeline, error)) {
        error_set(error, "out of memory");
        all->follow = follow_new(&calls, ALL_GRACE_NS, all->offset_ns);
    }
    if (all->follow) {
        timer_set(agent->loop, &all->look, 0);
        return all;
    }
    export_close_pipeline(agent->export, &all->pipeline);
    free(all);
    return NULL;
}

void send_all_close(struct send_all *all)
{
    if (!all)
        return;
    timer_clear(all->agent->loop, &all->look);
    all_advance(all, follow_look_at_all(all->follow));
    export_close_pipeline(all->agent->export, &all->pipeline);
    follow_free(all->follow);
    free(all->whole.log);
    free(all);
}
