/* SPDX-License-Identifier: BSD-2-Clause */
#include "open_traces.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>
#include <urcu/list.h>

struct open_trace {
    struct table_link in_table;
    struct cds_list_head by_age;
    uint64_t id_high;
    uint64_t id;
    int64_t last; /* the time when its last span was added */
    size_t bytes;
    struct trace_span *spans;
    uint32_t count;
    size_t room;
};

struct open_traces {
    struct open_traces_options options;
    struct table table;
    struct cds_list_head by_age; /* the longest quiet trace first */
    int64_t now;
    struct open_traces_counts counts;
    struct trace_model model; /* of the trace that is being closed */
};

static void free_trace(struct table_link *link)
{
    struct open_trace *trace = caa_container_of(link, struct open_trace, in_table);

    free(trace->spans);
    free(trace);
}

struct open_traces *open_traces_new(const struct open_traces_options *options)
{
    struct open_traces *traces = calloc(1, sizeof(*traces));

    if (!traces)
        return NULL;
    traces->options = *options;
    traces->now = INT64_MIN;
    CDS_INIT_LIST_HEAD(&traces->by_age);
    if (table_init(&traces->table))
        return traces;
    free(traces);
    return NULL;
}

void open_traces_free(struct open_traces *traces)
{
    if (!traces)
        return;
    table_destroy(&traces->table, free_trace);
    trace_model_destroy(&traces->model);
    free(traces);
}

struct open_traces_counts open_traces_counts(const struct open_traces *traces)
{
    return traces->counts;
}

/* ---- closing */

static void set_bytes(struct open_traces *traces, struct open_trace *trace, size_t bytes)
{
    traces->counts.open_bytes += bytes - trace->bytes;
    trace->bytes = bytes;
}

static bool link_trace(struct trace_model *model, const struct open_trace *trace)
{
    trace_model_clear(model);
    for (uint32_t i = 0; i < trace->count; i++) {
        if (!trace_model_add(model, &trace->spans[i]))
            return false;
    }
    return trace_model_link(model);
}

/* Removes the trace first, because the callback close() may call open_traces_add(). */
static void close_trace(struct open_traces *traces, struct open_trace *trace, bool is_early)
{
    const struct open_traces_options *options = &traces->options;
    struct closed_trace closed = {
        .trace_id_high = trace->id_high,
        .trace_id = trace->id,
        .model = &traces->model,
        .is_early = is_early,
    };
    struct trace_model bare = {.spans = trace->spans, .count = trace->count};

    table_remove(&traces->table, &trace->in_table);
    cds_list_del(&trace->by_age);
    set_bytes(traces, trace, 0);
    traces->counts.open--;
    traces->counts.open_spans -= trace->count;
    if (is_early)
        traces->counts.early++;
    else
        traces->counts.complete++;
    closed.is_linked = link_trace(&traces->model, trace);
    if (!closed.is_linked)
        closed.model = &bare;
    options->close(options->context, &closed);
    free_trace(&trace->in_table);
}

/* Returns the longest quiet trace. The list is not empty. */
static struct open_trace *open_traces_first(const struct open_traces *traces)
{
    /* never a freed one: close_trace() removes a trace from the list before it frees the trace */
    return cds_list_entry(traces->by_age.next, struct open_trace, by_age);
}

static void open_traces_note_time(struct open_traces *traces, int64_t now)
{
    traces->now = now > traces->now ? now : traces->now;
}

void open_traces_advance(struct open_traces *traces, int64_t now)
{
    open_traces_note_time(traces, now);
    while (!cds_list_empty(&traces->by_age) &&
           (uint64_t)traces->now - (uint64_t)open_traces_first(traces)->last >=
               traces->options.quiet)
        close_trace(traces, open_traces_first(traces), false);
}

bool open_traces_close_some(struct open_traces *traces, uint64_t count)
{
    while (count-- && !cds_list_empty(&traces->by_age))
        close_trace(traces, open_traces_first(traces), false);
    return !cds_list_empty(&traces->by_age);
}

/* ---- adding */

static struct open_trace *new_trace(struct open_traces *traces, uint64_t hash, uint64_t high,
                                    uint64_t low)
{
    struct open_trace *trace = calloc(1, sizeof(*trace));

    if (!trace || !ARRAY_FITS(trace->spans, trace->room, 0)) {
        free(trace);
        return NULL;
    }
    trace->id_high = high;
    trace->id = low;
    table_add(&traces->table, &trace->in_table, hash);
    cds_list_add_tail(&trace->by_age, &traces->by_age);
    set_bytes(traces, trace, sizeof(*trace) + trace->room * sizeof(*trace->spans));
    traces->counts.open++;
    return trace;
}

static struct open_trace *find_trace(struct open_traces *traces, uint64_t high, uint64_t low)
{
    const uint64_t hash = hash_mix(hash_mix(traces->table.seed ^ low) ^ high);
    struct open_trace *trace;

    table_find(trace, &traces->table, hash, in_table, trace->id == low && trace->id_high == high);
    return trace ? trace : new_trace(traces, hash, high, low);
}

static bool open_traces_make_room(struct open_traces *traces, struct open_trace *trace)
{
    const size_t before = trace->room;

    if (!ARRAY_FITS(trace->spans, trace->room, trace->count))
        return false;
    set_bytes(traces, trace, trace->bytes + (trace->room - before) * sizeof(*trace->spans));
    return true;
}

/* Returns NULL when out of memory. */
static struct open_trace *add_span(struct open_traces *traces, uint64_t trace_id_high,
                                   uint64_t trace_id, const struct trace_span *span, size_t bytes,
                                   int64_t now)
{
    struct open_trace *trace = find_trace(traces, trace_id_high, trace_id);

    if (!trace || !open_traces_make_room(traces, trace))
        return NULL;
    open_traces_note_time(traces, now);
    trace->last = traces->now;
    trace->spans[trace->count++] = *span;
    traces->counts.open_spans++;
    set_bytes(traces, trace, trace->bytes + bytes);
    cds_list_del(&trace->by_age);
    cds_list_add_tail(&trace->by_age, &traces->by_age);
    return trace;
}

bool open_traces_add(struct open_traces *traces, uint64_t trace_id_high, uint64_t trace_id,
                     const struct trace_span *span, size_t bytes, int64_t now)
{
    struct open_trace *trace = add_span(traces, trace_id_high, trace_id, span, bytes, now);

    if (!trace)
        return false;
    if (trace->count >= traces->options.max_spans)
        close_trace(traces, trace, true);
    while (traces->counts.open_bytes > traces->options.max_bytes)
        close_trace(traces, open_traces_first(traces), true);
    return true;
}

void open_traces_each(const struct open_traces *traces,
                      void (*each)(const struct trace_span *spans, uint32_t count))
{
    const struct open_trace *trace;

    cds_list_for_each_entry(trace, &traces->by_age, by_age)
    {
        each(trace->spans, trace->count);
    }
}
