/*
 * The life of an open span, from its first event to its end or its eviction, with its tags.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

static const struct endpoint *get_endpoint(struct assembler *assembler, struct text service,
                                           struct text ip, int64_t port)
{
    const struct endpoint *endpoint = endpoint_get(assembler->endpoints, service, ip, port);

    if (endpoint_is_overflow(assembler->endpoints, endpoint))
        assembler->counts.services_merged++;
    return endpoint;
}

const struct endpoint *assembler_endpoint(struct assembler *assembler, const struct event *event)
{
    return get_endpoint(assembler, event->service, event->ip, event->port);
}

struct endpoint_table *assembler_endpoints(struct assembler *assembler)
{
    return assembler->endpoints;
}

const struct endpoint *assembler_service(struct assembler *assembler, struct text service)
{
    return get_endpoint(assembler, service, (struct text){NULL, 0}, 0);
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
 * Marks the server's half of a shared span. No event says so, but the client's half begins first
 * and ends last, so it is known. Late events of a server's half may have no annotation with the
 * kind: such a span becomes a server's span.
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

/* The offset of the host's own clock when the trace was taken. */
static int64_t offset_as_told(const struct assembler *assembler, const struct event_source *source)
{
    int64_t offset_ns;

    if (__builtin_sub_overflow(assembler->options.wall_clock_ns, source->clock, &offset_ns) ||
        (offset_ns < CLOCK_NOISE_NS && offset_ns > -CLOCK_NOISE_NS))
        return 0;
    return offset_ns;
}

int64_t assembler_offset(const struct assembler *assembler, const struct event_source *source,
                         int64_t start_ns)
{
    return assembler->options.wall_clock_ns ? offset_as_told(assembler, source)
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
    assembler->sink(assembler->sink_context, &open->span);
}

void assembler_finish(struct assembler *assembler, struct open_span *open)
{
    assembler->counts.open_bytes -= open_span_bytes(open);
    open_spans_remove(&assembler->open, open);
    cds_list_del(&open->in_queue);
    assembler_give_out(assembler, open);
    open_spans_give(&assembler->open, open);
}

struct open_span *assembler_oldest_but(struct assembler *assembler, const struct open_span *but)
{
    struct open_queue *const queues[] = {&assembler->closing, &assembler->idle,
                                         &assembler->streaming};

    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        struct open_span *open = open_queue_first(queues[i]);

        if (open && open != but)
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

static void evict_until_it_fits(struct assembler *assembler, const struct open_span *but)
{
    struct assembler_counts *counts = &assembler->counts;
    struct open_span *oldest;

    while ((assembler->open.table.count > assembler->options.max_open_spans ||
            counts->open_bytes > assembler->options.max_open_bytes) &&
           (oldest = assembler_oldest_but(assembler, but)))
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
        evict_until_it_fits(assembler, open);
    }
    return open;
}

void assembler_account(struct assembler *assembler, const struct open_span *open,
                       uint32_t capacity_before)
{
    if (open->span.log_capacity == capacity_before)
        return;
    assembler->counts.open_bytes += open->span.log_capacity - capacity_before;
    evict_until_it_fits(assembler, open);
}
