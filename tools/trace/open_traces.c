/*
 * Traces whose spans are still coming.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "open_traces.h"

#include "core/hash.h"

#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#define PLACES (1U << 16)

struct open_span {
    struct span span;
    struct open_span *next;
    char texts[]; /* the service, then the name */
};

struct open_trace {
    struct cds_list_head by_age;
    struct open_trace *next; /* of the same place */
    struct open_span *spans;
    size_t count;
    size_t bytes;
    int64_t last_ms;
    uint32_t place;
    char id[33];
};

struct open_traces {
    struct statistics *statistics;
    uint64_t seed;
    size_t bytes;
    struct open_traces_counts counts;
    struct cds_list_head by_age; /* the one that is quiet for longest comes first */
    struct open_trace *places[PLACES];
};

struct open_traces *open_traces_new(struct statistics *statistics)
{
    struct open_traces *traces = calloc(1, sizeof(*traces));

    if (!traces)
        return NULL;
    traces->statistics = statistics;
    traces->seed = hash_seed(traces);
    CDS_INIT_LIST_HEAD(&traces->by_age);
    return traces;
}

/* If there is any. */
static struct open_trace *first_of(const struct open_traces *traces)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): one that is freed is out of the list before */
    return cds_list_entry(traces->by_age.next, struct open_trace, by_age);
}

static void remove_trace(struct open_traces *traces, struct open_trace *trace)
{
    struct open_trace **at = &traces->places[trace->place];

    while (*at != trace)
        at = &(*at)->next;
    *at = trace->next;
    cds_list_del(&trace->by_age);
    traces->bytes -= trace->bytes;
    traces->counts.open--;
    for (struct open_span *span = trace->spans; span;) {
        struct open_span *next = span->next;

        free(span);
        span = next;
    }
    free(trace);
}

void open_traces_free(struct open_traces *traces)
{
    if (!traces)
        return;
    while (!cds_list_empty(&traces->by_age))
        remove_trace(traces, first_of(traces));
    free(traces);
}

/* ---- closing */

static bool add_self_times(struct statistics *statistics, const struct open_trace *trace)
{
    struct span_list list = {.spans = calloc(trace->count, sizeof(*list.spans))};
    struct trace_list sorted = {NULL, 0, NULL};
    bool done = list.spans != NULL;

    for (struct open_span *span = trace->spans; done && span; span = span->next)
        list.spans[list.count++] = span->span;
    done = done && traces_sort(&list, &sorted) && trace_arrange(sorted.traces) &&
           statistics_add_self_times(statistics, sorted.traces);
    traces_free(&sorted);
    free(list.spans);
    return done;
}

static bool close_first(struct open_traces *traces, uint64_t *counter)
{
    struct open_trace *trace = first_of(traces);
    const bool done = add_self_times(traces->statistics, trace);

    ++*counter;
    remove_trace(traces, trace);
    return done;
}

bool open_traces_close_quiet(struct open_traces *traces, int64_t now_ms)
{
    bool done = true;

    while (done && !cds_list_empty(&traces->by_age) &&
           first_of(traces)->last_ms + OPEN_TRACES_QUIET_MS <= now_ms)
        done = close_first(traces, &traces->counts.complete);
    return done;
}

bool open_traces_close_all(struct open_traces *traces)
{
    bool done = true;

    while (done && !cds_list_empty(&traces->by_age))
        done = close_first(traces, &traces->counts.complete);
    return done;
}

struct open_traces_counts open_traces_counts(struct open_traces *traces)
{
    const struct open_traces_counts counts = traces->counts;

    traces->counts.complete = traces->counts.early = 0;
    return counts;
}

/* ---- adding */

static struct open_trace *find_trace(struct open_traces *traces, const char *id)
{
    const uint32_t place = hash_text(traces->seed, text_of(id)) % PLACES;
    struct open_trace *trace = traces->places[place];

    while (trace && strcmp(trace->id, id) != 0)
        trace = trace->next;
    if (trace) {
        cds_list_del(&trace->by_age);
    } else {
        trace = calloc(1, sizeof(*trace));
        if (!trace)
            return NULL;
        memcpy(trace->id, id, strlen(id) + 1);
        trace->place = place;
        trace->next = traces->places[place];
        traces->places[place] = trace;
        trace->bytes = sizeof(*trace);
        traces->bytes += trace->bytes;
        traces->counts.open++;
    }
    cds_list_add_tail(&trace->by_age, &traces->by_age);
    return trace;
}

static bool add_span(struct open_traces *traces, struct open_trace *trace, const struct span *span)
{
    const size_t service_size = strlen(span->service) + 1, name_size = strlen(span->name) + 1;
    const size_t size = sizeof(struct open_span) + service_size + name_size;
    struct open_span *added = malloc(size);

    if (!added)
        return false;
    added->span = *span;
    added->span.service = memcpy(added->texts, span->service, service_size);
    added->span.name = memcpy(added->texts + service_size, span->name, name_size);
    added->span.kind = "";
    added->span.error = span->error ? "" : NULL;
    added->span.json = NULL;
    added->next = trace->spans;
    trace->spans = added;
    trace->count++;
    trace->bytes += size;
    traces->bytes += size;
    return true;
}

bool open_traces_add(struct open_traces *traces, const struct span *span, int64_t now_ms)
{
    struct open_trace *trace = find_trace(traces, span->trace_id);
    bool done = trace && add_span(traces, trace, span);

    if (!done)
        return false;
    trace->last_ms = now_ms;
    if (trace->count == OPEN_TRACE_SPANS_MAX) {
        cds_list_move(&trace->by_age, &traces->by_age);
        done = close_first(traces, &traces->counts.early);
    }
    while (done && traces->bytes > OPEN_TRACES_BYTES)
        done = close_first(traces, &traces->counts.early);
    return done;
}
