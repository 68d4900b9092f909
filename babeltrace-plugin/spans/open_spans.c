/* SPDX-License-Identifier: BSD-2-Clause */
#include "open_spans.h"

#include "babeltrace-plugin/base/hash.h"
#include "tracepoints/format/step_id.h"

#include <stdlib.h>
#include <urcu/compiler.h>

#define SPAN_POOL_MAX 4096 /* spans */
#define POOL_LOG_MAX  4096 /* bytes: a larger log is freed */

/* Mixes both ids: many spans with one trace id must not make one long chain. */
static uint64_t open_spans_hash(uint64_t seed, uint64_t trace_id, uint64_t span_id)
{
    return hash_mix(trace_id ^ hash_mix(seed ^ span_id));
}

bool open_spans_init(struct open_spans *spans)
{
    CDS_INIT_LIST_HEAD(&spans->pool);
    spans->pool_length = 0;
    spans->has_halves = false;
    return table_init(&spans->table);
}

static void free_open_span(struct open_span *open)
{
    free(open->span.log);
    free(open);
}

static void free_list(struct cds_list_head *list)
{
    struct open_span *open, *next;

    cds_list_for_each_entry_safe(open, next, list, in_queue) free_open_span(open);
}

void open_spans_destroy(struct open_spans *spans)
{
    free_list(&spans->pool);
    table_destroy(&spans->table, NULL);
}

/* Visits all spans with these ids. */
#define FOR_EACH_OF(open, spans, of_trace, of_span)                                     \
    table_for_each_of(                                                                  \
        open, &(spans)->table, open_spans_hash((spans)->table.seed, of_trace, of_span), \
        in_table) if ((open)->span.id == (of_span) && (open)->span.trace_id == (of_trace))

struct open_span *open_spans_find(struct open_spans *spans, const struct event *event)
{
    struct open_span *open;

    FOR_EACH_OF(open, spans, event->trace_id, event->span_id)
    {
        if (!open->streaming &&
            endpoint_is(open->span.endpoint, event->service, event->ip, event->port))
            return open;
        spans->has_halves = true;
    }
    return NULL;
}

struct open_span *open_spans_find_at(struct open_spans *spans, const struct event *event,
                                     const struct endpoint *endpoint)
{
    struct open_span *open;

    FOR_EACH_OF(open, spans, event->trace_id, event->span_id)
    {
        if (open->span.endpoint == endpoint && !open->streaming)
            return open;
    }
    return NULL;
}

static bool is_on_host(struct text host, const struct open_span *open)
{
    return text_equal(open->source->host, host);
}

struct open_span *open_spans_find_streamed(struct open_spans *spans, const struct event *event)
{
    struct open_span *open, *of_process = NULL, *of_host = NULL;

    FOR_EACH_OF(open, spans, event->trace_id, event->span_id)
    {
        if (!open->streaming)
            continue;
        if (open->thread == event->thread)
            return open;
        if (!is_on_host(event->origin.host, open))
            continue;
        if (open->process == origin_process(&event->origin))
            of_process = open;
        else
            of_host = open;
    }
    return of_process ? of_process : of_host;
}

struct open_span *open_spans_find_repeated(struct open_spans *spans, const struct span *span,
                                           struct text host)
{
    struct open_span *open;

    FOR_EACH_OF(open, spans, span->trace_id, span->id)
    {
        if (open->streaming && open->span.kind == span->kind && is_on_host(host, open))
            return open;
    }
    return NULL;
}

static struct open_span *find_around(struct open_spans *spans, const struct open_span *step)
{
    struct open_span *open;

    FOR_EACH_OF(open, spans, step->span.trace_id, step->span.parent_id)
    {
        if (open->streaming && open->source == step->source)
            return open;
    }
    return NULL;
}

static void steps_given_note(struct steps_given *given, uint64_t number, enum span_kind kind)
{
    for (unsigned i = 0; i < 3 && number - 1 < STEPS_NOTED; i++) {
        given->bits[i] &= ~(UINT64_C(1) << (number - 1));
        given->bits[i] |= ((uint64_t)kind + 1) >> i & 1 ? UINT64_C(1) << (number - 1) : 0;
    }
}

bool steps_given_has(const struct steps_given *given, uint64_t number, enum span_kind kind)
{
    unsigned noted = 0;

    for (unsigned i = 0; i < 3 && number - 1 < STEPS_NOTED; i++)
        noted |= (unsigned)(given->bits[i] >> (number - 1) & 1) << i;
    return noted == (unsigned)kind + 1;
}

void open_spans_note_step(struct open_spans *spans, const struct open_span *step)
{
    const struct open_span *at = step;
    uint64_t number;

    /* visits the open steps around the step, then their span */
    for (unsigned i = 0; i < 16 && blkin_step_number(at->span.parent_id, at->span.id, &number);
         i++) {
        struct open_span *around = find_around(spans, at);

        if (!around)
            break;
        if (blkin_step_number(around->span.id, step->span.id, &number))
            steps_given_note(&around->steps_given, number, step->span.kind);
        at = around;
    }
}

bool open_spans_has_client(struct open_spans *spans, const struct span *span)
{
    struct open_span *open;

    if (!spans->has_halves)
        return false;
    FOR_EACH_OF(open, spans, span->trace_id, span->id)
    {
        if (open->span.kind == SPAN_CLIENT && open->span.endpoint != span->endpoint)
            return true;
    }
    return false;
}

void open_spans_remove(struct open_spans *spans, struct open_span *open)
{
    table_remove(&spans->table, &open->in_table);
}

static struct open_span *open_spans_clear(struct open_spans *spans)
{
    struct open_span *open;
    char *log;
    uint32_t log_capacity;

    if (cds_list_empty(&spans->pool))
        return calloc(1, sizeof(*open));
    open = cds_list_first_entry(&spans->pool, struct open_span, in_queue);
    cds_list_del(&open->in_queue);
    spans->pool_length--;

    log = open->span.log;
    log_capacity = open->span.log_capacity;
    memset(open, 0, sizeof(*open));
    open->span.log = log;
    open->span.log_capacity = log_capacity;
    return open;
}

struct open_span *open_spans_take(struct open_spans *spans)
{
    struct open_span *open = open_spans_clear(spans);

    if (open)
        open->span.mark = marks_hold(spans->marks, 0);
    return open;
}

void open_spans_give(struct open_spans *spans, struct open_span *open)
{
    marks_release(spans->marks, open->span.mark);
    if (spans->pool_length >= SPAN_POOL_MAX || open->span.log_capacity > POOL_LOG_MAX) {
        free_open_span(open);
        return;
    }
    cds_list_add(&open->in_queue, &spans->pool);
    spans->pool_length++;
}

static struct open_span *find_surplus(struct open_spans *spans, uint64_t trace_id, uint64_t span_id)
{
    struct open_span *open, *oldest = NULL;
    unsigned alike = 0;

    FOR_EACH_OF(open, spans, trace_id, span_id)
    {
        alike++;
        if (!oldest || open->span.recorded_ns < oldest->span.recorded_ns)
            oldest = open;
    }
    return alike < OPEN_SAME_IDS_MAX ? NULL : oldest;
}

struct open_span *open_spans_add(struct open_spans *spans, const struct event *event,
                                 const struct endpoint *endpoint, struct event_source *source,
                                 struct open_span **surplus)
{
    const uint64_t hash = open_spans_hash(spans->table.seed, event->trace_id, event->span_id);
    struct open_span *open = open_spans_take(spans);

    if (!open)
        return NULL;
    open->span.trace_id_high = event->trace_id_high;
    open->span.trace_id = event->trace_id;
    open->span.id = event->span_id;
    open->span.parent_id = event->parent_id;
    open->span.endpoint = endpoint;
    open->source = source;
    open->span.start_ns = event->time_ns;
    open->process = origin_process(&event->origin);
    open->thread = event->thread;
    if (!span_set_name(&open->span, event->span_name)) {
        open_spans_give(spans, open);
        return NULL;
    }
    *surplus = find_surplus(spans, event->trace_id, event->span_id);
    table_add(&spans->table, &open->in_table, hash);
    CDS_INIT_LIST_HEAD(&open->in_queue);
    return open;
}

void open_queue_init(struct open_queue *queue, int64_t timeout_ns)
{
    CDS_INIT_LIST_HEAD(&queue->spans);
    queue->timeout_ns = timeout_ns;
}

void open_queue_append(struct open_queue *queue, struct open_span *open, int64_t now_ns)
{
    open->span.recorded_ns = now_ns;
    cds_list_del(&open->in_queue);
    cds_list_add_tail(&open->in_queue, &queue->spans);
}

struct open_span *open_queue_first(struct open_queue *queue)
{
    return cds_list_empty(&queue->spans)
               ? NULL
               : cds_list_first_entry(&queue->spans, struct open_span, in_queue);
}

struct open_span *open_queue_expired(struct open_queue *queue, int64_t now_ns)
{
    struct open_span *open = open_queue_first(queue);

    /* unsigned: a trace may contain any times, and the difference of any two int64_t fits */
    if (open && (uint64_t)now_ns - (uint64_t)open->span.recorded_ns < (uint64_t)queue->timeout_ns)
        return NULL;
    return open;
}

void open_queue_free(struct open_queue *queue)
{
    free_list(&queue->spans);
}

/* ---- spans that were given out recently: direct-mapped tables -------------------------------- */

void recent_destroy(struct recent *recent)
{
    free(recent->shared);
}

static uint64_t recent_hash(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id));
}

/* The kind is part of the hash: client and server halves of a span may have the same ids. */
static uint64_t hash_of_streamed(const struct span *span, const struct event_source *source)
{
    return hash_mix(recent_hash(span) ^ source->host_hash ^ span->kind);
}

void recent_note_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);

    recent->streamed[hash & (RECENT_SLOTS - 1)] = hash;
}

bool recent_take_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);
    uint64_t *slot = &recent->streamed[hash & (RECENT_SLOTS - 1)];

    if (*slot != hash)
        return false;
    *slot = 0;
    return true;
}

void recent_note_client(struct recent *recent, const struct span *span)
{
    const uint64_t hash = recent_hash(span);

    recent->clients[hash & (RECENT_SLOTS - 1)] = (struct recent_client){hash, span->endpoint};
    recent->has_clients = true;
}

bool recent_has_client(const struct recent *recent, const struct span *span)
{
    const struct recent_client *slot;
    uint64_t hash;

    if (!recent->has_clients)
        return false;
    hash = recent_hash(span);
    slot = &recent->clients[hash & (RECENT_SLOTS - 1)];
    return slot->hash == hash && slot->endpoint && slot->endpoint != span->endpoint;
}

static uint64_t hash_of_shared(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id ^ span->endpoint->hash));
}

void recent_note_shared(struct recent *recent, const struct span *span)
{
    const uint64_t hash = hash_of_shared(span);

    if (!recent->shared)
        recent->shared = calloc(RECENT_SHARED_SLOTS, sizeof(*recent->shared));
    if (recent->shared)
        recent->shared[hash & (RECENT_SHARED_SLOTS - 1)] = (uint32_t)(hash >> 32);
}

bool recent_has_shared(const struct recent *recent, const struct span *span)
{
    uint64_t hash;

    if (!recent->shared)
        return false;
    hash = hash_of_shared(span);
    return hash >> 32 && recent->shared[hash & (RECENT_SHARED_SLOTS - 1)] == (uint32_t)(hash >> 32);
}
