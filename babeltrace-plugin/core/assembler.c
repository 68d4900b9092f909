/*
 * The table of open spans and the two queues in which they wait for their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler.h"

#include "hash.h"

#include <stdlib.h>
#include <urcu/list.h>

#define FIRST_BUCKETS 1024
#define POOL_MAX      4096 /* finished spans whose memory is kept for the next ones */
#define POOL_LOG_MAX  4096 /* bytes: a log beyond this goes back to the heap */

struct open_span {
    struct span span;
    struct open_span *next_in_bucket;
    struct cds_list_head in_queue;
    int64_t last_event_ns;
    int64_t first_event_ns;
    bool has_timestamp;
    bool closing;
};

/* Every span of a queue waits equally long, so the first in is the first out. */
struct queue {
    struct cds_list_head spans; /* by last_event_ns */
    int64_t timeout_ns;
};

struct assembler {
    struct open_span **buckets;
    size_t bucket_mask;
    struct queue idle;
    struct queue closing;
    struct cds_list_head pool;
    size_t pool_length;
    struct endpoint_table *endpoints;
    int64_t now_ns;
    assembler_sink_fn *sink;
    void *sink_context;
    struct assembler_counts counts;
};

static void queue_init(struct queue *queue, int64_t timeout_ns)
{
    CDS_INIT_LIST_HEAD(&queue->spans);
    queue->timeout_ns = timeout_ns;
}

struct assembler *assembler_new(const struct assembler_options *options, assembler_sink_fn *sink,
                                void *context)
{
    struct assembler *assembler = calloc(1, sizeof(*assembler));

    if (!assembler)
        return NULL;
    queue_init(&assembler->idle, options->idle_timeout_ns);
    queue_init(&assembler->closing, options->end_timeout_ns);
    CDS_INIT_LIST_HEAD(&assembler->pool);
    assembler->now_ns = INT64_MIN;
    assembler->sink = sink;
    assembler->sink_context = context;
    assembler->buckets = calloc(FIRST_BUCKETS, sizeof(*assembler->buckets));
    assembler->bucket_mask = FIRST_BUCKETS - 1;
    assembler->endpoints = endpoint_table_new();
    if (!assembler->buckets || !assembler->endpoints) {
        assembler_free(assembler);
        return NULL;
    }
    return assembler;
}

static void open_span_free(struct open_span *open)
{
    free(open->span.log);
    free(open);
}

static void free_list(struct cds_list_head *list)
{
    struct open_span *open, *next;

    cds_list_for_each_entry_safe(open, next, list, in_queue) open_span_free(open);
}

void assembler_free(struct assembler *assembler)
{
    if (!assembler)
        return;
    free_list(&assembler->idle.spans);
    free_list(&assembler->closing.spans);
    free_list(&assembler->pool);
    endpoint_table_free(assembler->endpoints);
    free(assembler->buckets);
    free(assembler);
}

const struct assembler_counts *assembler_counts(const struct assembler *assembler)
{
    return &assembler->counts;
}

/* One trace id shared by many spans must not make one long chain: both ids are mixed in. */
static struct open_span **bucket_of(struct assembler *assembler, uint64_t trace_id,
                                    uint64_t span_id)
{
    return &assembler->buckets[hash_mix(trace_id ^ hash_mix(span_id)) & assembler->bucket_mask];
}

static struct open_span *find(struct assembler *assembler, const struct event *event,
                              const struct endpoint *endpoint)
{
    struct open_span *open = *bucket_of(assembler, event->trace_id, event->span_id);

    while (open && !(open->span.id == event->span_id && open->span.trace_id == event->trace_id &&
                     open->span.endpoint == endpoint))
        open = open->next_in_bucket;
    return open;
}

/* Twice the buckets when there are as many spans; without memory the chains just get longer. */
static void grow_if_full(struct assembler *assembler)
{
    struct open_span **old = assembler->buckets;
    size_t old_size = assembler->bucket_mask + 1;
    struct open_span **new_buckets;

    if (assembler->counts.spans_open < old_size)
        return;
    new_buckets = calloc(old_size * 2, sizeof(*new_buckets));
    if (!new_buckets)
        return;
    assembler->buckets = new_buckets;
    assembler->bucket_mask = old_size * 2 - 1;
    for (size_t i = 0; i < old_size; i++) {
        struct open_span *open = old[i];

        while (open) {
            struct open_span *next = open->next_in_bucket;
            struct open_span **bucket = bucket_of(assembler, open->span.trace_id, open->span.id);

            open->next_in_bucket = *bucket;
            *bucket = open;
            open = next;
        }
    }
    free(old);
}

static void remove_from_bucket(struct assembler *assembler, struct open_span *open)
{
    struct open_span **link = bucket_of(assembler, open->span.trace_id, open->span.id);

    while (*link != open)
        link = &(*link)->next_in_bucket;
    *link = open->next_in_bucket;
}

/* A cleared span, with the log of an older one where the pool has any. */
static struct open_span *take_from_pool(struct assembler *assembler)
{
    struct open_span *open;
    char *log;
    uint32_t log_capacity;

    if (cds_list_empty(&assembler->pool))
        return calloc(1, sizeof(*open));
    open = cds_list_first_entry(&assembler->pool, struct open_span, in_queue);
    cds_list_del(&open->in_queue);
    assembler->pool_length--;

    log = open->span.log;
    log_capacity = open->span.log_capacity;
    memset(open, 0, sizeof(*open));
    open->span.log = log;
    open->span.log_capacity = log_capacity;
    return open;
}

static void give_to_pool(struct assembler *assembler, struct open_span *open)
{
    if (assembler->pool_length >= POOL_MAX || open->span.log_capacity > POOL_LOG_MAX) {
        open_span_free(open);
        return;
    }
    cds_list_add(&open->in_queue, &assembler->pool);
    assembler->pool_length++;
}

static struct open_span *open_new(struct assembler *assembler, const struct event *event,
                                  const struct endpoint *endpoint)
{
    struct open_span *open = take_from_pool(assembler);
    struct open_span **bucket;

    if (!open)
        return NULL;
    open->span.trace_id = event->trace_id;
    open->span.id = event->span_id;
    open->span.parent_id = event->parent_id;
    open->span.endpoint = endpoint;
    open->first_event_ns = event->time_ns;
    if (!span_set_name(&open->span, event->span_name)) {
        open_span_free(open);
        return NULL;
    }
    grow_if_full(assembler);
    bucket = bucket_of(assembler, event->trace_id, event->span_id);
    open->next_in_bucket = *bucket;
    *bucket = open;
    CDS_INIT_LIST_HEAD(&open->in_queue);
    assembler->counts.spans_open++;
    return open;
}

/* Without any timestamp annotation, the times of its tags are all that is known of a span. */
static void set_times(struct open_span *open)
{
    if (!open->has_timestamp) {
        open->span.start_ns = open->first_event_ns;
        open->span.end_ns = open->last_event_ns;
    }
}

static void finish(struct assembler *assembler, struct open_span *open)
{
    set_times(open);
    remove_from_bucket(assembler, open);
    cds_list_del(&open->in_queue);
    assembler->counts.spans_open--;
    assembler->counts.spans_finished++;
    assembler->sink(assembler->sink_context, &open->span);
    give_to_pool(assembler, open);
}

static void finish_expired(struct assembler *assembler, struct queue *queue)
{
    while (!cds_list_empty(&queue->spans)) {
        struct open_span *open = cds_list_first_entry(&queue->spans, struct open_span, in_queue);

        /* unsigned: the difference of any two int64_t fits, a trace may hold any */
        if ((uint64_t)assembler->now_ns - (uint64_t)open->last_event_ns <
            (uint64_t)queue->timeout_ns)
            return;
        finish(assembler, open);
    }
}

void assembler_advance(struct assembler *assembler, int64_t now_ns)
{
    if (now_ns <= assembler->now_ns)
        return;
    assembler->now_ns = now_ns;
    finish_expired(assembler, &assembler->closing);
    finish_expired(assembler, &assembler->idle);
}

void assembler_flush(struct assembler *assembler)
{
    while (!cds_list_empty(&assembler->closing.spans))
        finish(assembler,
               cds_list_first_entry(&assembler->closing.spans, struct open_span, in_queue));
    while (!cds_list_empty(&assembler->idle.spans))
        finish(assembler, cds_list_first_entry(&assembler->idle.spans, struct open_span, in_queue));
}

/* Zipkin's core annotations: they give a span its kind, and the second of each pair closes it. */
static void apply_core_annotation(struct open_span *open, struct text value)
{
    if (value.length != 2)
        return;
    if (text_is(value, "cs") || text_is(value, "cr"))
        open->span.kind = SPAN_CLIENT;
    else if (text_is(value, "sr") || text_is(value, "ss"))
        open->span.kind = SPAN_SERVER;
    if (text_is(value, "cr") || text_is(value, "ss"))
        open->closing = true;
}

static bool apply(struct open_span *open, const struct event *event)
{
    struct span *span = &open->span;

    switch (event->kind) {
    case EVENT_TIMESTAMP:
        if (!span_add(span, SPAN_ANNOTATION, (struct text){NULL, 0}, event->value, event->time_ns))
            return false;
        if (!open->has_timestamp || event->time_ns < span->start_ns)
            span->start_ns = event->time_ns;
        if (!open->has_timestamp || event->time_ns > span->end_ns)
            span->end_ns = event->time_ns;
        open->has_timestamp = true;
        apply_core_annotation(open, event->value);
        return true;
    case EVENT_KEYVAL_TEXT:
        return span_add(span, SPAN_TAG_TEXT, event->key, event->value, 0);
    case EVENT_KEYVAL_INTEGER:
        return span_add(span, SPAN_TAG_INTEGER, event->key, (struct text){NULL, 0}, event->integer);
    }
    return false;
}

static void wait_for_end(struct assembler *assembler, struct open_span *open)
{
    struct queue *queue = open->closing ? &assembler->closing : &assembler->idle;

    open->last_event_ns = assembler->now_ns;
    cds_list_del(&open->in_queue);
    cds_list_add_tail(&open->in_queue, &queue->spans);
}

void assembler_add(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint;
    struct open_span *open;

    assembler->counts.events++;
    assembler_advance(assembler, event->time_ns);
    if (event->trace_id == 0 || event->span_id == 0) {
        assembler->counts.events_invalid++;
        return;
    }
    endpoint = endpoint_get(assembler->endpoints, event->service, event->ip, event->port);
    open = endpoint ? find(assembler, event, endpoint) : NULL;
    if (endpoint && !open)
        open = open_new(assembler, event, endpoint);
    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    if (apply(open, event))
        assembler->counts.events_in_span++;
    else
        assembler->counts.events_no_room++;
    wait_for_end(assembler, open);
}
