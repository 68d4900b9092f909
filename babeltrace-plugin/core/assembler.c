/*
 * The table of open spans and the two queues in which they wait for their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler.h"

#include "hash.h"
#include "log.h"
#include "sequence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/list.h>

#include "../../tracepoints/events.h"

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
    bool streaming; /* of blkin:begin: has an end of its own */
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
    struct queue streaming;
    struct cds_list_head pool;
    size_t pool_length;
    struct endpoint_table *endpoints;
    struct sequence_table *sequences;
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
    queue_init(&assembler->streaming, options->open_timeout_ns);
    CDS_INIT_LIST_HEAD(&assembler->pool);
    assembler->now_ns = INT64_MIN;
    assembler->sink = sink;
    assembler->sink_context = context;
    assembler->buckets = calloc(FIRST_BUCKETS, sizeof(*assembler->buckets));
    assembler->bucket_mask = FIRST_BUCKETS - 1;
    assembler->endpoints = endpoint_table_new();
    assembler->sequences = sequence_table_new();
    if (!assembler->buckets || !assembler->endpoints || !assembler->sequences) {
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
    free_list(&assembler->streaming.spans);
    free_list(&assembler->pool);
    sequence_table_free(assembler->sequences);
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

static bool is_of_span(const struct event *event, const struct open_span *open)
{
    return open->span.id == event->span_id && open->span.trace_id == event->trace_id;
}

static struct open_span *find(struct assembler *assembler, const struct event *event,
                              const struct endpoint *endpoint)
{
    struct open_span *open = *bucket_of(assembler, event->trace_id, event->span_id);

    while (open &&
           !(is_of_span(event, open) && open->span.endpoint == endpoint && !open->streaming))
        open = open->next_in_bucket;
    return open;
}

/* The later events of a streamed span do not repeat its endpoint. */
static struct open_span *find_streamed(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = *bucket_of(assembler, event->trace_id, event->span_id);

    while (open && !(is_of_span(event, open) && open->streaming))
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
    open->span.trace_id_high = event->trace_id_high;
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

static void add_mark(struct assembler *assembler, struct span *span, const char *key,
                     const char *value)
{
    if (!span_add(span, SPAN_TAG_TEXT, text_of(key), text_of(value), 0))
        assembler->counts.log_errors++;
}

static void mark_incomplete(struct assembler *assembler, struct span *span)
{
    add_mark(assembler, span, "blkin.incomplete", "its end was not seen");
    assembler->counts.spans_incomplete++;
}

static void finish(struct assembler *assembler, struct open_span *open)
{
    if (open->streaming && !open->closing)
        mark_incomplete(assembler, &open->span);
    if (!open->streaming)
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
    finish_expired(assembler, &assembler->streaming);
}

static void finish_all(struct assembler *assembler, struct queue *queue)
{
    while (!cds_list_empty(&queue->spans))
        finish(assembler, cds_list_first_entry(&queue->spans, struct open_span, in_queue));
}

void assembler_flush(struct assembler *assembler)
{
    finish_all(assembler, &assembler->closing);
    finish_all(assembler, &assembler->idle);
    finish_all(assembler, &assembler->streaming);
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
    default:
        return false;
    }
}

static void wait_in(struct assembler *assembler, struct open_span *open, struct queue *queue)
{
    open->last_event_ns = assembler->now_ns;
    cds_list_del(&open->in_queue);
    cds_list_add_tail(&open->in_queue, &queue->spans);
}

static void count_applied(struct assembler *assembler, bool applied)
{
    if (applied)
        assembler->counts.events_in_span++;
    else
        assembler->counts.events_no_room++;
}

static const struct endpoint *endpoint_of(struct assembler *assembler, const struct event *event)
{
    return endpoint_get(assembler->endpoints, event->service, event->ip, event->port);
}

static void add_original(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint = endpoint_of(assembler, event);
    struct open_span *open = endpoint ? find(assembler, event, endpoint) : NULL;

    if (endpoint && !open)
        open = open_new(assembler, event, endpoint);
    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    count_applied(assembler, apply(open, event));
    wait_in(assembler, open, open->closing ? &assembler->closing : &assembler->idle);
}

/* ---- the span API's events ---- */

static bool add_number(struct span *span, const struct log_record *record)
{
    char text[40];
    double real;

    switch (record->type) {
    case 'd':
        memcpy(&real, &record->bits, sizeof(real));
        snprintf(text, sizeof(text), "%.15g", real);
        break;
    case 'b':
        snprintf(text, sizeof(text), "%s", record->bits ? "true" : "false");
        break;
    case 'u':
        snprintf(text, sizeof(text), "%" PRIu64, record->bits);
        break;
    default:
        return span_add(span, SPAN_TAG_INTEGER, record->key, (struct text){NULL, 0},
                        (int64_t)record->bits);
    }
    return span_add(span, SPAN_TAG_TEXT, record->key, text_of(text), 0);
}

static bool add_log_record(struct assembler *assembler, struct span *span,
                           const struct log_record *record)
{
    switch (record->type) {
    case 'a':
        return span_add(span, SPAN_ANNOTATION, (struct text){NULL, 0}, record->value,
                        (int64_t)((uint64_t)span->start_ns + (uint64_t)record->offset_ns));
    case 's':
        return span_add(span, SPAN_TAG_TEXT, record->key, record->value, 0);
    case 'r':
        span->remote = endpoint_get(assembler->endpoints, record->value, record->key, record->port);
        return span->remote != NULL;
    default:
        return add_number(span, record);
    }
}

/* What is wrong with a log costs its records, not the span. */
static void add_log(struct assembler *assembler, struct span *span, struct text log)
{
    struct log_record record;

    while (log_next(&log, &record)) {
        if (!add_log_record(assembler, span, &record))
            assembler->counts.log_errors++;
    }
    if (log.length)
        assembler->counts.log_errors++;
}

static void add_dropped(struct assembler *assembler, struct span *span, uint64_t dropped)
{
    char text[24];

    if (!dropped)
        return;
    assembler->counts.log_errors += dropped;
    snprintf(text, sizeof(text), "%" PRIu64, dropped);
    add_mark(assembler, span, "blkin.dropped", text);
}

static enum span_kind kind_of(const struct event *event)
{
    return event->span_kind <= SPAN_CONSUMER ? (enum span_kind)event->span_kind : SPAN_LOCAL;
}

/* The moment that an event tells of; false if that is not a time after the epoch. */
static bool moment_of(const struct event *event, uint64_t before_ns, int64_t *moment_ns)
{
    if (event->time_ns < 0 || event->age_ns > (uint64_t)event->time_ns ||
        before_ns > (uint64_t)event->time_ns - event->age_ns)
        return false;
    *moment_ns = (int64_t)((uint64_t)event->time_ns - event->age_ns - before_ns);
    return true;
}

static void add_whole_span(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = take_from_pool(assembler);
    struct span *span;

    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    span = &open->span;
    span->endpoint = endpoint_of(assembler, event);
    if (!moment_of(event, event->duration_ns, &span->start_ns)) {
        assembler->counts.events_invalid++;
    } else if (!span->endpoint || !span_set_name(span, event->span_name)) {
        assembler->counts.events_no_room++;
    } else {
        span->trace_id_high = event->trace_id_high;
        span->trace_id = event->trace_id;
        span->id = event->span_id;
        span->parent_id = event->parent_id;
        span->kind = kind_of(event);
        span->debug = event->flags & BLKIN_SPAN_DEBUG;
        span->end_ns = span->start_ns + (int64_t)event->duration_ns;
        add_log(assembler, span, event->log);
        add_dropped(assembler, span, event->dropped);
        assembler->counts.events_in_span++;
        assembler->counts.spans_finished++;
        assembler->sink(assembler->sink_context, span);
    }
    give_to_pool(assembler, open);
}

static void begin_streamed(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint = endpoint_of(assembler, event);
    struct open_span *open = endpoint ? open_new(assembler, event, endpoint) : NULL;

    count_applied(assembler, open != NULL);
    if (!open)
        return;
    open->streaming = true;
    open->span.kind = kind_of(event);
    open->span.debug = event->flags & BLKIN_SPAN_DEBUG;
    if (!moment_of(event, 0, &open->span.start_ns))
        open->span.start_ns = event->time_ns;
    open->span.end_ns = open->span.start_ns;
    wait_in(assembler, open, &assembler->streaming);
}

static bool apply_detail(struct assembler *assembler, struct span *span, const struct event *event,
                         int64_t moment_ns)
{
    struct text log = event->log;
    struct log_record record;

    if (event->kind == EVENT_ANNOTATION)
        return span_add(span, SPAN_ANNOTATION, (struct text){NULL, 0}, event->value, moment_ns);
    return log_next(&log, &record) && record.type != 'a' &&
           add_log_record(assembler, span, &record);
}

static void add_detail(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = find_streamed(assembler, event);
    int64_t moment_ns;

    if (!open) {
        assembler->counts.events_late++;
        return;
    }
    if (!moment_of(event, 0, &moment_ns))
        moment_ns = event->time_ns;
    if (moment_ns > open->span.end_ns)
        open->span.end_ns = moment_ns;
    if (event->kind == EVENT_END) {
        assembler->counts.events_in_span++;
        open->closing = true;
        finish(assembler, open);
        return;
    }
    count_applied(assembler, apply_detail(assembler, &open->span, event, moment_ns));
    wait_in(assembler, open, &assembler->streaming);
}

static bool is_of_span_api(const struct event *event)
{
    return event->kind >= EVENT_SPAN;
}

void assembler_add(struct assembler *assembler, const struct event *event)
{
    assembler->counts.events++;
    assembler_advance(assembler, event->time_ns);
    if (is_of_span_api(event))
        assembler->counts.events_missing +=
            sequence_note(assembler->sequences, event->thread, event->sequence);
    if (event->kind == EVENT_PROCESS) {
        assembler->counts.events_process++;
        return;
    }
    /* a 128-bit trace id may have a low half of 0; the original's id 0 is "not traced" */
    if ((event->trace_id | event->trace_id_high) == 0 || event->span_id == 0) {
        assembler->counts.events_invalid++;
        return;
    }
    switch (event->kind) {
    case EVENT_SPAN:
        add_whole_span(assembler, event);
        break;
    case EVENT_BEGIN:
        begin_streamed(assembler, event);
        break;
    case EVENT_ANNOTATION:
    case EVENT_TAG:
    case EVENT_END:
        add_detail(assembler, event);
        break;
    default:
        add_original(assembler, event);
    }
}
