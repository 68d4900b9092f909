/*
 * The assembler: creation, trace time, the dispatch of events, and the life of an open span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include <stdlib.h>

/* ---- the life of an open span, from its first event to its end or its eviction, with its tags  */

const struct endpoint *assembler_endpoint(struct assembler *assembler, const struct event *event)
{
    return endpoint_get(assembler->endpoints, event->service, event->ip, event->port);
}

struct endpoint_table *assembler_endpoints(struct assembler *assembler)
{
    return assembler->endpoints;
}

const struct endpoint *assembler_service(struct assembler *assembler, struct text service)
{
    return endpoint_get(assembler->endpoints, service, (struct text){NULL, 0}, 0);
}

struct event_source *assembler_source(struct assembler *assembler, const struct origin *origin)
{
    return source_get(assembler->sources, origin);
}

void assembler_count(struct assembler *assembler, struct open_span *open, bool in_span)
{
    if (!in_span) {
        assembler->counts.events_no_room++;
        return;
    }
    assembler->counts.events_in_span++;
    open->events++;
}

void assembler_tag(struct assembler *assembler, struct span *span, const char *key,
                   struct text value)
{
    if (value.length && !span_add(span, SPAN_TAG_TEXT, text_of(key), value, 0))
        assembler_lose_part(assembler);
}

static void assembler_tag_number(struct assembler *assembler, struct span *span, const char *key,
                                 int64_t value)
{
    if (value && !span_add(span, SPAN_TAG_INTEGER, text_of(key), (struct text){NULL, 0}, value))
        assembler_lose_part(assembler);
}

void assembler_tag_origin(struct assembler *assembler, struct span *span,
                          const struct origin *origin)
{
    assembler_tag(assembler, span, "lttng.host", origin->host);
    assembler_tag(assembler, span, "lttng.procname", origin->process);
    assembler_tag_number(assembler, span, "lttng.vpid", origin->pid);
    assembler_tag_number(assembler, span, "lttng.vtid", origin->tid);
}

void assembler_mark_incomplete(struct assembler *assembler, struct span *span, const char *why)
{
    assembler_tag(assembler, span, "blkin.incomplete", text_of(why));
    assembler->counts.spans_incomplete++;
}

static uint64_t open_span_bytes(const struct open_span *open)
{
    return sizeof(*open) + open->span.log_capacity;
}

/*
 * Marks the server's half of a shared span. No event marks the half. But the client's half begins
 * first and ends last, so it is open or was given out recently. Late events of a server's half may
 * have no annotation with the kind: such a span becomes a server's span.
 */
static void set_shared(struct assembler *assembler, struct open_span *open)
{
    struct span *span = &open->span;

    if (span->kind == SPAN_LOCAL && !open->streaming && recent_has_shared(&assembler->recent, span))
        span->kind = SPAN_SERVER;
    span->shared = span->kind == SPAN_SERVER && (open_spans_has_client(&assembler->open, span) ||
                                                 recent_has_client(&assembler->recent, span) ||
                                                 recent_has_shared(&assembler->recent, span));
    if (span->shared)
        recent_note_shared(&assembler->recent, span);
}

/* Returns the correction of a source's times by options.wall_clock_ns; 0 if it is only noise. */
static int64_t offset_from_options(const struct assembler *assembler,
                                   const struct event_source *source)
{
    int64_t offset_ns;

    if (__builtin_sub_overflow(assembler->options.wall_clock_ns, source->clock, &offset_ns) ||
        (offset_ns < CLOCK_NOISE_NS && offset_ns > -CLOCK_NOISE_NS))
        return 0;
    return offset_ns;
}

static int64_t assembler_offset(const struct assembler *assembler,
                                const struct event_source *source, int64_t start_ns)
{
    return assembler->options.wall_clock_ns ? offset_from_options(assembler, source)
                                            : clock_offset(&source->correction, start_ns);
}

void assembler_correct_times(struct assembler *assembler, struct span *span,
                             const struct event_source *source)
{
    const int64_t offset_ns = assembler_offset(assembler, source, span->start_ns);

    if (offset_ns && span_shift(span, offset_ns))
        assembler->counts.spans_corrected++;
}

static void assembler_give_out(struct assembler *assembler, struct open_span *open)
{
    if (open->evicted)
        assembler_mark_incomplete(assembler, &open->span, "too many spans were open");
    else if (open->left_open)
        assembler_mark_incomplete(assembler, &open->span, ENDED_WITH_SPAN);
    else if (open->streaming && !open->closing)
        assembler_mark_incomplete(assembler, &open->span, "its end was not seen");
    if (!open->streaming && !open->has_timestamp)
        open->span.end_ns = open->span.recorded_ns; /* the time of the last tag */
    if (assembler->has_losses || assembler->has_gaps)
        assembler_tag_loss_in(assembler, open);
    set_shared(assembler, open);
    if (open->streaming && open->closing) {
        recent_note_streamed(&assembler->recent, &open->span, open->source);
        open_spans_note_step(&assembler->open, open);
    }
    if (open->span.kind == SPAN_CLIENT)
        recent_note_client(&assembler->recent, &open->span);
    if (assembler->has_offsets)
        assembler_correct_times(assembler, &open->span, open->source);
    assembler->counts.spans_finished++;
    assembler->give(assembler->context, &open->span);
}

void assembler_finish(struct assembler *assembler, struct open_span *open)
{
    assembler->counts.open_bytes -= open_span_bytes(open);
    open_spans_remove(&assembler->open, open);
    cds_list_del(&open->in_queue);
    assembler_give_out(assembler, open);
    open_spans_give(&assembler->open, open);
}

/* Returns the oldest span of the first queue whose oldest span is not `except`. Spans with an end
 * are finished first. NULL: there is no such queue. */
static struct open_span *assembler_oldest_except(struct assembler *assembler,
                                                 const struct open_span *except)
{
    struct open_queue *const queues[] = {&assembler->closing, &assembler->idle,
                                         &assembler->streaming};

    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        struct open_span *open = open_queue_first(queues[i]);

        if (open && open != except)
            return open;
    }
    return NULL;
}

static void evict(struct assembler *assembler, struct open_span *open)
{
    assembler->counts.spans_evicted++;
    open->evicted = !open->closing;
    assembler_finish(assembler, open);
}

/* Evicts spans other than `except` until the open spans are within their limits. */
static void evict_surplus(struct assembler *assembler, const struct open_span *except)
{
    struct assembler_counts *counts = &assembler->counts;
    struct open_span *oldest;

    while ((assembler->open.table.count > assembler->options.max_open_spans ||
            counts->open_bytes > assembler->options.max_open_bytes) &&
           (oldest = assembler_oldest_except(assembler, except)))
        evict(assembler, oldest);
}

struct open_span *assembler_open(struct assembler *assembler, const struct event *event,
                                 const struct endpoint *endpoint)
{
    struct open_span *surplus;
    struct open_span *open =
        open_spans_add(&assembler->open, event, endpoint,
                       source_get(assembler->sources, &event->origin), &surplus);

    if (open) {
        assembler_tag_origin(assembler, &open->span, &event->origin);
        assembler->counts.open_bytes += open_span_bytes(open);
        if (surplus)
            evict(assembler, surplus);
        evict_surplus(assembler, open);
    }
    return open;
}

void assembler_account(struct assembler *assembler, const struct open_span *open,
                       uint32_t capacity_before)
{
    if (open->span.log_capacity == capacity_before)
        return;
    assembler->counts.open_bytes += open->span.log_capacity - capacity_before;
    evict_surplus(assembler, open);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

struct assembler *assembler_new(const struct assembler_options *options, assembler_give_fn *give,
                                void *context)
{
    struct assembler *assembler = calloc(1, sizeof(*assembler));

    if (!assembler)
        return NULL;
    assembler->options = *options;
    if (options->closing.count == 0) {
        (void)closing_add(&assembler->options.closing, text_of("cr"));
        (void)closing_add(&assembler->options.closing, text_of("ss"));
    }
    open_queue_init(&assembler->idle, options->idle_timeout_ns);
    open_queue_init(&assembler->closing, options->end_timeout_ns);
    open_queue_init(&assembler->streaming, options->open_timeout_ns);
    assembler->now_ns = INT64_MIN;
    assembler->has_offsets = options->correct_clocks && options->wall_clock_ns;
    assembler->give = give;
    assembler->context = context;
    assembler->endpoints = options->endpoints ? options->endpoints : endpoint_table_new();
    assembler->sources = source_table_new();
    if (!open_spans_init(&assembler->open) || !assembler->endpoints || !assembler->sources) {
        assembler_free(assembler);
        return NULL;
    }
    assembler->open.marks = options->marks;
    return assembler;
}

void assembler_free(struct assembler *assembler)
{
    if (!assembler)
        return;
    open_queue_free(&assembler->idle);
    open_queue_free(&assembler->closing);
    open_queue_free(&assembler->streaming);
    open_spans_destroy(&assembler->open);
    recent_destroy(&assembler->recent);
    source_table_free(assembler->sources);
    if (!assembler->options.endpoints)
        endpoint_table_free(assembler->endpoints);
    free(assembler);
}

const struct assembler_counts *assembler_counts(struct assembler *assembler)
{
    assembler_count_late(assembler);
    assembler->counts.spans_open = assembler->open.table.count;
    assembler->counts.events_awaited = assembler->sequences.awaited;
    assembler->counts.services_merged += endpoint_take_merged(assembler->endpoints);
    return &assembler->counts;
}

struct marks *assembler_marks(const struct assembler *assembler)
{
    return assembler->options.marks;
}

int64_t assembler_now(const struct assembler *assembler)
{
    return assembler->now_ns;
}

static void finish_expired(struct assembler *assembler, struct open_queue *queue)
{
    struct open_span *open;

    while ((open = open_queue_expired(queue, assembler->now_ns)))
        assembler_finish(assembler, open);
}

static void finish_all_expired(struct assembler *assembler)
{
    finish_expired(assembler, &assembler->closing);
    finish_expired(assembler, &assembler->idle);
    finish_expired(assembler, &assembler->streaming);
}

void assembler_advance(struct assembler *assembler, int64_t now_ns)
{
    if (now_ns <= assembler->now_ns)
        return;
    assembler->now_ns = now_ns;
    if (assembler->open.table.count)
        finish_all_expired(assembler);
}

bool assembler_flush_some(struct assembler *assembler, unsigned spans)
{
    struct open_span *open;

    for (; (open = assembler_oldest_except(assembler, NULL)); spans--) {
        if (spans == 0)
            return true;
        assembler_finish(assembler, open);
    }
    assembler_count_missing(assembler, INT64_MAX);
    return false;
}

/* A 128-bit trace id may have a low half of 0, and a streamed span's detail events have only the
 * low half. In the original's events, the id 0 means "not traced". */
static bool has_ids(const struct event *event)
{
    const bool is_detail =
        event->kind == EVENT_ANNOTATION || event->kind == EVENT_TAG || event->kind == EVENT_END;

    return ((event->trace_id | event->trace_id_high) != 0 || is_detail) && event->span_id != 0;
}

void assembler_note_clock(struct assembler *assembler, const struct event *event)
{
    struct event_source *source;

    if (!assembler->options.correct_clocks || assembler->options.wall_clock_ns)
        return;
    source = source_get(assembler->sources, &event->origin);
    if (source->is_overflow)
        assembler->counts.not_noted++;
    else if (clock_note(&source->correction, origin_process(&event->origin), event->time_ns,
                        event->realtime))
        assembler->has_offsets = true;
}

static void hand_on_metric(struct assembler *assembler, const struct event *event)
{
    int64_t time_ns = assembler_moment_of(event, 0);

    assembler->counts.events_metric++;
    if (!assembler->options.metric)
        return;
    if (assembler->has_offsets)
        time_ns = assembler_moment_after(
            time_ns,
            assembler_offset(assembler, source_get(assembler->sources, &event->origin), time_ns));
    assembler->options.metric(assembler->context, event, time_ns);
}

/* ---- the original's events: each is an annotation or a tag of a span without an end event */

static bool original_apply(const struct closing *closing, struct open_span *open,
                           const struct event *event)
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
        /* Zipkin's core annotations give a span its kind */
        if (text_is(event->value, "cs") || text_is(event->value, "cr"))
            span->kind = SPAN_CLIENT;
        else if (text_is(event->value, "sr") || text_is(event->value, "ss"))
            span->kind = SPAN_SERVER;
        open->closing |= closing_has(closing, event->value);
        return true;
    case EVENT_KEYVAL_TEXT:
        return span_add(span, SPAN_TAG_TEXT, event->key, event->value, 0);
    case EVENT_KEYVAL_INTEGER:
        return span_add(span, SPAN_TAG_INTEGER, event->key, (struct text){NULL, 0}, event->integer);
    default:
        return false;
    }
}

/* Returns NULL when out of memory. */
static struct open_span *original_find_or_open(struct assembler *assembler,
                                               const struct event *event)
{
    struct open_span *open = open_spans_find(&assembler->open, event);
    const struct endpoint *endpoint;

    if (open)
        return open;
    endpoint = assembler_endpoint(assembler, event);
    if (!endpoint)
        return NULL;
    /* one endpoint may stand for many: the span may have the endpoint of another event */
    if (!endpoint_is(endpoint, event->service, event->ip, event->port))
        open = open_spans_find_at(&assembler->open, event, endpoint);
    return open ? open : assembler_open(assembler, event, endpoint);
}

static void assembler_add_original(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = original_find_or_open(assembler, event);
    uint32_t capacity;

    assembler->has_original = true;
    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    open->span.is_cut |= event->is_cut;
    capacity = open->span.log_capacity;
    assembler_count(assembler, open, original_apply(&assembler->options.closing, open, event));
    assembler_account(assembler, open, capacity);
    open_queue_append(open->closing ? &assembler->closing : &assembler->idle, open,
                      assembler->now_ns);
}

/* ---- the dispatch of events ------------------------------------------------------------------ */

__attribute__((noinline)) static void add_ours(struct assembler *assembler,
                                               const struct event *event)
{
    const bool is_of_span_api = event->kind >= EVENT_SPAN;

    if (is_of_span_api && !assembler->options.is_filtered)
        assembler_note_sequence(assembler, event);
    if (event->kind == EVENT_METRIC) {
        hand_on_metric(assembler, event);
    } else if (event->kind == EVENT_PROCESS) {
        assembler->counts.events_process++;
        assembler_note_clock(assembler, event);
    } else if (!has_ids(event)) {
        assembler->counts.events_invalid++;
    } else if (is_of_span_api) {
        assembler_add_span_api(assembler, event);
    } else {
        assembler_add_original(assembler, event);
    }
}

static inline void add_event(struct assembler *assembler, const struct event *event)
{
    if (event->kind != EVENT_RULE) {
        add_ours(assembler, event);
        return;
    }
    assembler->counts.events_rule++;
    if (assembler->options.rule)
        assembler->options.rule(assembler->context, event);
}

/* Finishes spans whose time is over, then adds the event. */
__attribute__((noinline)) static void add_after_finished(struct assembler *assembler,
                                                         const struct event *event)
{
    finish_all_expired(assembler);
    add_event(assembler, event);
}

/* All calls are tail calls, so that the frequent events of rules need no stack frame. */
void assembler_add(struct assembler *assembler, const struct event *event)
{
    assembler->counts.events++;
    if (event->time_ns > assembler->now_ns) {
        assembler->now_ns = event->time_ns;
        if (assembler->open.table.count) {
            add_after_finished(assembler, event);
            return;
        }
    }
    add_event(assembler, event);
}
