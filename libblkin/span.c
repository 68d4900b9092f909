/*
 * The frame of a span: its begin and its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "process.h"
#include "put.h"
#include "sampling.h"
#include "thread.h"

static const int not_known_yet = 1;

const int *blkin_gate_ = &not_known_yet;

/* ---- begin ---- */

#define DECISION (uint32_t)(BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_SAMPLED)

static bool has_ids(const struct blkin_context *context)
{
    return context && (context->trace_id | context->trace_id_high);
}

/* The span's own ids, in the trace of parent or in a new one. */
static void set_ids(struct blkin_context *context, const struct blkin_context *parent,
                    struct blkin_thread *thread)
{
    if (has_ids(parent)) {
        *context = *parent;
        context->parent_span_id = parent->span_id;
        context->span_id = blkin_id_next(thread);
        return;
    }
    *context = (struct blkin_context){
        .trace_id_high = blkin_id_next(thread),
        .trace_id = blkin_id_next(thread),
        .flags = BLKIN_CONTEXT_RANDOM | (parent ? parent->flags : 0),
    };
    context->span_id = blkin_id_next(thread);
}

/* The service that records the span; storage is for one that is its own. */
static const struct blkin_service *service_of(const struct blkin_span *span,
                                              struct blkin_service *storage)
{
    if (__builtin_expect(!span->service_, 1))
        return blkin_default_service();
    blkin_service_prepare(storage, span->service_);
    return storage;
}

/* Made once per trace, where it starts, and carried with it. */
static struct blkin_decision decide(const struct blkin_context *context, const char *name)
{
    if (context->flags & BLKIN_CONTEXT_DEBUG)
        return (struct blkin_decision){true, 0};
    if (context->flags & BLKIN_CONTEXT_DECIDED)
        return (struct blkin_decision){context->flags & BLKIN_CONTEXT_SAMPLED, 0};
    return blkin_sampling_decide(name, context->trace_id);
}

__attribute__((noinline)) static void stream_begin(struct blkin_span *span)
{
    struct blkin_thread *thread = blkin_this_thread();
    struct blkin_service own;
    const struct blkin_service *service = service_of(span, &own);
    const struct blkin_begin_event event = {
        .trace_id_high = span->context.trace_id_high,
        .trace_id = span->context.trace_id,
        .span_id = span->context.span_id,
        .parent_id = span->context.parent_span_id,
        .thread = thread->number,
        .sequence = ++thread->sequence,
        .sampled = (uint32_t)span->sampled_ppm_,
        .port = service->port,
        .kind = span->kind_,
        .flags = span->flags_,
    };
    char *at = (char *)span->record_;

    span->state_ = SPAN_STREAMING;
    at = blkin_put_bytes(at, &event, sizeof(event));
    at = blkin_put_text(at, span->name_, span->name_length_, SPAN_NAME_MAX);
    at = blkin_put_bytes(at, service->strings, service->length);
    blkin_record_event(blkin_provider(), BLKIN_EVENT_BEGIN, span->record_,
                       (size_t)(at - (char *)span->record_));
}

/* Below another process's span, or none: false if the span is not to be recorded. */
static bool begin_trace(struct blkin_span *span, const char *name,
                        const struct blkin_context *parent)
{
    static const struct blkin_context none;
    struct blkin_decision decision;

    /* acquire: who sees the gate that the loading has set sees all else that it has set */
    if (__atomic_load_n(&blkin_gate_, __ATOMIC_ACQUIRE) == &not_known_yet) {
        blkin_provider_load();
        if (!blkin_is_on_()) {
            span->context = parent ? *parent : none;
            return false;
        }
    }
    if (has_ids(parent) && (parent->flags & DECISION) == BLKIN_CONTEXT_DECIDED) {
        span->context = *parent;
        return false;
    }
    set_ids(&span->context, parent, blkin_this_thread());
    decision = decide(&span->context, name);
    span->context.flags |= BLKIN_CONTEXT_DECIDED;
    span->context.flags &= ~(uint32_t)(BLKIN_CONTEXT_REMOTE | BLKIN_CONTEXT_SAMPLED);
    if (!decision.sampled) {
        /* a process that records nothing must see the sampling file change too */
        blkin_do_chores_if_due(blkin_ticks());
        return false;
    }
    span->context.flags |= BLKIN_CONTEXT_SAMPLED;
    span->sampled_ppm_ = decision.ppm;
    span->flags_ = (span->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0) |
                   (parent && parent->flags & BLKIN_CONTEXT_REMOTE ? BLKIN_SPAN_REMOTE : 0);
    return true;
}

static inline void begin(struct blkin_span *span, const char *name, size_t name_length,
                         uint32_t kind, uint64_t now)
{
    span->kind_ = (uint8_t)kind;
    span->log_length_ = 0;
    span->dropped_ = 0;
    span->name_ = name;
    span->name_length_ = name_length;
    span->service_ = NULL;
    span->state_ = SPAN_AT_END;
    span->start_ticks_ = now;
    if (__builtin_expect(blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN), 0))
        stream_begin(span);
}

void blkin_span_begin_(struct blkin_span *span, const char *name, size_t name_length, uint32_t kind,
                       const struct blkin_context *parent)
{
    if (begin_trace(span, name, parent))
        begin(span, name, name_length, kind, blkin_ticks());
    else
        span->state_ = 0;
}

static inline void begin_child(struct blkin_span *span, const char *name, size_t name_length,
                               uint32_t kind, const struct blkin_span *parent, uint64_t id,
                               uint64_t now)
{
    const uint64_t parent_id = parent->context.span_id;

    span->context = parent->context;
    span->context.parent_span_id = parent_id;
    span->context.span_id = id;
    span->flags_ = parent->flags_ & (uint8_t)~BLKIN_SPAN_REMOTE;
    span->sampled_ppm_ = parent->sampled_ppm_;
    begin(span, name, name_length, kind, now);
}

/* What calls others is left to functions of its own: the usual way then saves no registers. */
__attribute__((noinline)) static void begin_child_otherwise(struct blkin_span *span,
                                                            const char *name, size_t name_length,
                                                            uint32_t kind,
                                                            const struct blkin_span *parent)
{
    begin_child(span, name, name_length, kind, parent, blkin_id_next(blkin_this_thread()),
                blkin_ticks());
}

void blkin_span_begin_child_(struct blkin_span *span, const char *name, size_t name_length,
                             uint32_t kind, const struct blkin_span *parent)
{
    const uint64_t id = blkin_id_try(&blkin_thread);

    if (__builtin_expect(id == 0, 0) || !blkin_use_counter())
        begin_child_otherwise(span, name, name_length, kind, parent);
    else
        begin_child(span, name, name_length, kind, parent, id, blkin_counter());
}

/* ---- end ---- */

/* How a span ended: it lasted duration ns until age ns before now. */
struct ending {
    uint64_t now_ticks;
    uint64_t duration;
    uint64_t age;
};

#define NOW UINT64_MAX /* for a time: the span ends with the call */

static inline struct ending ending_at(const struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t now_ns = time_ns == NOW ? 0 : blkin_monotonic_ns();
    const uint64_t age = time_ns < now_ns ? now_ns - time_ns : 0;
    const uint64_t now = blkin_ticks();
    const uint64_t whole = blkin_elapsed_ns(span->start_ticks_, now);

    return (struct ending){now, whole > age ? whole - age : 0, age};
}

/*
 * The clock is read when all else is in place: nearest to LTTng's own time stamp, and while it is
 * read the stores before it reach the cache, where the copy into the ring buffer finds them.
 */
static inline uint64_t record_span(struct blkin_span *span, uint64_t time_ns)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_service own;
    const struct blkin_service *service = service_of(span, &own);
    struct blkin_thread *thread = blkin_this_thread();
    struct blkin_span_event *event = (struct blkin_span_event *)(void *)span->record_;
    struct ending ending;
    char *at;

    /* trace_id_high, trace_id, span_id and parent_id: the same in both */
    memcpy(event, &span->context, offsetof(struct blkin_span_event, duration));
    event->thread = thread->number;
    event->sequence = thread->sequence + 1;
    event->sampled = (uint32_t)span->sampled_ppm_;
    event->port = service->port;
    event->dropped = span->dropped_;
    event->kind = span->kind_;
    event->flags = span->flags_;
    at = span_log(span) + span->log_length_;
    *at++ = '\0';
    at = blkin_put_text(at, span->name_, span->name_length_, SPAN_NAME_MAX);
    at = blkin_put_bytes(at, service->strings, service->length);

    ending = ending_at(span, time_ns);
    event->duration = ending.duration;
    event->age = ending.age;
    if (blkin_event_enabled(provider, BLKIN_EVENT_SPAN)) {
        thread->sequence++;
        blkin_record_event(provider, BLKIN_EVENT_SPAN, event, (size_t)(at - (char *)event));
    }
    return ending.now_ticks;
}

__attribute__((noinline)) static uint64_t stream_end(const struct blkin_span *span,
                                                     uint64_t time_ns)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread = blkin_this_thread();
    const struct ending ending = ending_at(span, time_ns);
    const struct blkin_detail_event event = {
        .trace_id = span->context.trace_id,
        .span_id = span->context.span_id,
        .age = ending.age,
        .thread = thread->number,
        .sequence = thread->sequence + 1,
    };

    if (blkin_event_enabled(provider, BLKIN_EVENT_END)) {
        thread->sequence++;
        blkin_record_event(provider, BLKIN_EVENT_END, &event, sizeof(event));
    }
    return ending.now_ticks;
}

static inline void end(struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t now_ticks = __builtin_expect(span->state_ == SPAN_STREAMING, 0)
                                   ? stream_end(span, time_ns)
                                   : record_span(span, time_ns);

    span->state_ = 0;
    blkin_do_chores_if_due(now_ticks);
}

void blkin_span_end_(struct blkin_span *span)
{
    end(span, NOW);
}

void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns)
{
    end(span, time_ns);
}

void blkin_span_set_start_(struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t now_ns = blkin_monotonic_ns();

    if (time_ns < now_ns)
        span->start_ticks_ = blkin_ticks() - blkin_ticks_of_ns(now_ns - time_ns);
}

/* ---- the current span ---- */

struct blkin_span *blkin_current(void)
{
    return blkin_thread.current;
}

struct blkin_span *blkin_set_current(struct blkin_span *span)
{
    struct blkin_span *before = blkin_thread.current;

    blkin_thread.current = span;
    return before;
}
