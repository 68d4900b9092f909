/* SPDX-License-Identifier: BSD-2-Clause */
#include "send_all.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "deaths.h"
#include "export.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/rings/follow.h"
#include "tracepoints/format/provider_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A program writes a record at most about this long after the record's time: see follow.h. */
#define ALL_GRACE_NS INT64_C(5000000)
/* The pipeline also gets the samples of this time before the start. */
#define ALL_SAMPLES_NS INT64_C(10000000000)

struct send_all {
    struct agent *agent;
    int64_t begun_ns; /* since 1970 */
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
    struct marks marks;    /* their times are numbers of places */
    json_t *places[MARKS]; /* by number */
    json_t *next;          /* settled when export_settled() reaches next_given; NULL: none */
    uint64_t next_given;
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

static void all_add_loss(struct send_all *all, int64_t begin_ns, int64_t end_ns)
{
    struct loss loss = {.has_times = true, .begin_ns = begin_ns, .end_ns = end_ns};

    all_set_origin(all, &loss.origin);
    assembler_note_loss(all->pipeline.assembler, &loss);
}

static void all_note_loss(void *context, int64_t begin_ns, int64_t end_ns)
{
    struct send_all *all = context;

    all_add_loss(all, begin_ns, end_ns);
    if (all->has_said_lost || begin_ns < all->begun_ns) /* see all_note_overwritten() */
        return;
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
    (void)pipeline_advance(&all->pipeline, &ignored);
    (void)export_check(all->agent->export);
}

static void all_look(void *context)
{
    struct send_all *all = context;
    int64_t next_ms;

    all->next_sample =
        sampler_read(all->sampler, all->next_sample, all->samples_from_ns, all_take_sample, all);
    all_advance(all, follow_look(all->follow));
    next_ms = follow_next_ms(all->follow, config_integer(all->agent->config, "ring-poll-ms"));
    export_note_pause(all->agent->export, next_ms);
    timer_set(all->agent->loop, &all->look, next_ms);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Returns the current place; NULL: out of memory. */
static json_t *all_place(const struct send_all *all, const struct held *held)
{
    json_t *memories = json_array();

    for (; held; held = held->next) {
        json_t *at = json_array();

        for (uint32_t cpu = 0; cpu < held->memory.size.cpus; cpu++)
            (void)json_array_append_new(
                at, json_integer((json_int_t)follow_position(all->follow, &held->memory, cpu)));
        (void)json_array_append_new(memories,
                                    json_pack("{sI, sI, so}", "user", (json_int_t)held->user,
                                              "number", (json_int_t)held->number, "at", at));
    }
    return json_pack("{sI, so}", "mono_ns", (json_int_t)follow_done_ns(all->follow), "memories",
                     memories);
}

static void all_set_place(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = value;
}

/* Makes a mark of the current place. The next place to settle is one before which the pipeline
 * holds no span. */
bool send_all_settle(struct send_all *all, const struct held *first)
{
    const uint64_t number = all->marks.last + 1;
    const bool is_settled = all->next && export_settled(all->agent->export) >= all->next_given;
    const struct mark *mark;

    if (is_settled) {
        all_set_place(&all->agent->totals.read, all->next);
        all->next = NULL;
    }
    if (number - all->marks.first < MARKS)
        all_set_place(&all->places[number % MARKS], all_place(all, first));
    mark = marks_advance(&all->marks, &(struct trace_position){(int64_t)number, 0}, 0);
    if (!all->next && mark->at.time_ns) {
        all->next = json_incref(all->places[(uint64_t)mark->at.time_ns % MARKS]);
        all->next_given = export_given(all->agent->export);
    }
    return is_settled;
}

static const json_t *all_place_of(const json_t *place, const struct held *held)
{
    const json_t *memory;
    size_t i;

    json_array_foreach(json_object_get(place, "memories"), i, memory)
    {
        if (number_in(memory, "user") == (json_int_t)held->user &&
            number_in(memory, "number") == (json_int_t)held->number)
            return json_object_get(memory, "at");
    }
    return NULL;
}

/* Returns the bytes of the memory's rings from the place up to now, without the newest `kept`
 * bytes of each ring. */
static uint64_t all_bytes_since(const json_t *place, const struct held *held, uint64_t kept)
{
    const json_t *at = all_place_of(place, held);
    uint64_t bytes = 0;

    for (uint32_t cpu = 0; cpu < held->memory.size.cpus; cpu++) {
        const uint64_t end = ring_committed(memory_ring(&held->memory, cpu));
        const uint64_t from = (uint64_t)json_integer_value(json_array_get(at, cpu));

        bytes += end > from + kept ? end - from - kept : 0;
    }
    return bytes;
}

/* Counts the bytes from that place up to the ends of the rings, where the reading begins. */
static void all_note_skipped(struct send_all *all, const json_t *place, const struct held *first)
{
    const int64_t begin_ns = number_in(place, "mono_ns") + all->offset_ns;
    uint64_t bytes = 0;

    for (const struct held *held = first; held; held = held->next)
        bytes += all_bytes_since(place, held, 0);
    all->agent->totals.skipped_bytes += bytes;
    all_add_loss(all, begin_ns, clock_ns() + all->offset_ns);
    say(BK4079,
        "%" PRIu64 " bytes of the rings since %s are skipped, because two agents in a row crashed "
        "while they read them",
        bytes, date_text(begin_ns, 3).text);
}

/* Counts and logs the bytes that were overwritten since the place read_on. */
static void all_note_overwritten(struct send_all *all, const struct held *first)
{
    const json_t *place = all->agent->read_on;
    uint64_t bytes = 0;

    for (const struct held *held = first; held; held = held->next)
        bytes += all_bytes_since(place, held, held->memory.size.event_bytes - RING_RECORD_MAX);
    all->agent->totals.skipped_bytes += bytes;
    if (bytes)
        say(BK4080,
            "%" PRIu64 " bytes of the rings were overwritten since %s, before this agent could "
            "read them: spans there are lost, unless the previous agent has sent them",
            bytes, date_text(number_in(place, "mono_ns") + all->offset_ns, 3).text);
}

void send_all_add_memory(struct send_all *all, const struct held *held)
{
    const json_t *read_on = all->agent->read_on, *at = all_place_of(read_on, held);

    if (!follow_add(all->follow, &held->memory, !read_on)) {
        say(BK4072, "out of memory: rings of %" PRIu64 " bytes are not read", held->memory.bytes);
        return;
    }
    for (uint32_t cpu = 0; cpu < json_array_size(at); cpu++)
        follow_begin_at(all->follow, &held->memory, cpu,
                        (uint64_t)json_integer_value(json_array_get(at, cpu)));
}

void send_all_drop_memory(struct send_all *all, const struct held *held)
{
    follow_drop(all->follow, &held->memory);
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

/* Returns the time from which records are read. */
static int64_t all_begin_ns(struct agent *agent)
{
    const int64_t now_ns = clock_ns(), from_ns = number_in(agent->read_on, "mono_ns");

    if (!agent->read_on || (from_ns > 0 && from_ns <= now_ns))
        return agent->read_on ? from_ns : now_ns;
    agent_forget_place(agent); /* of an earlier boot */
    return now_ns;
}

struct send_all *send_all_open(struct agent *agent, struct held *first, struct error *error)
{
    struct send_all *all = calloc(1, sizeof(*all));
    const struct follow_calls calls = {all_take_event, all_note_loss, all};
    json_t *skipped = deaths_skip_place(agent) ? json_incref(agent->read_on) : NULL;
    bool is_resumed, is_sure;
    int64_t from_ns;

    if (skipped)
        agent_forget_place(agent);
    from_ns = all_begin_ns(agent);
    is_resumed = agent->read_on && agent->read_on == agent->totals.read;
    is_sure = !is_resumed || json_is_true(json_object_get(agent->read_on, "is_end"));
    (void)json_object_del(agent->read_on,
                          "is_end"); /* for the next process, if this one is killed */
    if (!all) {
        json_decref(skipped);
        return error_null(error, "out of memory");
    }
    *all = (struct send_all){.agent = agent,
                             .offset_ns = ring_clock_offset(),
                             .samples_from_ns = clock_ns() - ALL_SAMPLES_NS,
                             .pipeline = {.marks = &all->marks},
                             .next = json_incref(agent->read_on),
                             .next_given = export_given(agent->export),
                             .look = {.due = all_look, .context = all}};
    all->begun_ns = clock_ns() + all->offset_ns;
    all->pipeline.resumed_ns = is_sure ? 0 : all->begun_ns;
    if (export_open_pipeline(agent->export, &all->pipeline, error)) {
        error_set(error, "out of memory");
        all->follow = follow_new(&calls, from_ns, ALL_GRACE_NS, all->offset_ns);
    }
    if (!all->follow) {
        export_close_pipeline(agent->export, &all->pipeline);
        json_decref(all->next);
        json_decref(skipped);
        free(all);
        return NULL;
    }
    if (is_resumed)
        say(BK4076, "continues to read the rings from %s%s",
            date_text(from_ns + all->offset_ns, 3).text,
            is_sure ? "" : ": spans recorded since then may be sent twice");
    for (const struct held *held = first; held; held = held->next)
        send_all_add_memory(all, held);
    if (is_resumed)
        all_note_overwritten(all, first);
    if (skipped)
        all_note_skipped(all, skipped, first);
    json_decref(skipped);
    if (!agent->totals.read) /* after a kill, the next process reads on from here */
        agent->totals.read = all_place(all, first);
    timer_set(agent->loop, &all->look, 0);
    return all;
}

void send_all_close(struct send_all *all, const struct held *first)
{
    if (!all)
        return;
    timer_clear(all->agent->loop, &all->look);
    all_advance(all, follow_look_at_all(all->follow));
    all_set_place(&all->agent->read_on, all_place(all, first));
    (void)json_object_set_new(all->agent->read_on, "is_end", json_true());
    export_close_pipeline(all->agent->export, &all->pipeline);
    follow_free(all->follow);
    for (unsigned i = 0; i < MARKS; i++)
        json_decref(all->places[i]);
    json_decref(all->next);
    free(all->whole.log);
    free(all);
}
