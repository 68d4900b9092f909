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
    const struct blkin_service *service = blkin_default_service();
    const struct blkin_begin_event event = {
        .trace_id_high = span->context.trace_id_high,
        .trace_id = span->context.trace_id,
        .span_id = span->context.span_id,
        .parent_id = span->context.parent_span_id,
        .thread = thread->number,
        .sequence = ++thread->sequence,
        .sampled = span->traits_.sampled_ppm,
        .port = service->port,
        .kind = span->traits_.kind,
        .flags = span->traits_.flags,
    };
    char payload[sizeof(event) + SPAN_NAME_MAX + 1 + sizeof(service->strings)];
    char *at = payload;

    span->state_ = SPAN_STREAMING;
    span->limit_ = 0;
    at = blkin_put_bytes(at, &event, sizeof(event));
    at = blkin_put_bytes(at, span_name(span), (size_t)(span_unused(span) - span_name(span)));
    at = blkin_put_bytes(at, service->strings, service->length);
    blkin_record_event(blkin_provider(), BLKIN_EVENT_BEGIN, payload, (size_t)(at - payload));
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
        if (!blkin_is_on()) {
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
    span->traits_.sampled_ppm = decision.ppm;
    span->traits_.dropped = 0;
    span->traits_.flags = (span->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0) |
                          (parent && parent->flags & BLKIN_CONTEXT_REMOTE ? BLKIN_SPAN_REMOTE : 0);
    return true;
}

static inline void set_frame(struct blkin_span *span, size_t name_length)
{
    span->state_ = SPAN_AT_END;
    span->has_context_ = 1;
    span->limit_ = SPAN_USED_MAX;
    span->used_ = (uint32_t)(sizeof(struct blkin_span_event) + name_length + 1);
    span->service_ = NULL;
    span_name(span)[name_length] = '\0';
}

static void begin(struct blkin_span *span, const char *name, size_t name_length)
{
    if (name_length > SPAN_NAME_MAX)
        name_length = SPAN_NAME_MAX;
    set_frame(span, name_length);
    (void)blkin_put_bytes(span_name(span), name, name_length);
    span->start_ticks_ = blkin_ticks();
    (void)blkin_default_service(); /* there is one when the span ends */
    if (!blkin_use_counter())
        span->limit_ = 0;
    if (blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN))
        stream_begin(span);
}

void blkin_span_begin_(struct blkin_span *span, const char *name, size_t name_length, uint32_t kind,
                       const struct blkin_context *parent)
{
    if (!begin_trace(span, name, parent)) {
        blkin_frame_(span, 1);
        return;
    }
    span->traits_.kind = (uint8_t)kind;
    begin(span, name, name_length);
}

/* A child has its parent's sampling and flags, but for one. In one word, in any byte order. */
static inline void inherit(struct blkin_span_traits_ *traits,
                           const struct blkin_span_traits_ *parent, uint8_t kind)
{
    const struct blkin_span_traits_ inherited = {UINT32_MAX, 0, 0, (uint8_t)~BLKIN_SPAN_REMOTE};
    const struct blkin_span_traits_ own = {.kind = kind};
    uint64_t word, mask, own_word;

    memcpy(&word, parent, sizeof(word));
    memcpy(&mask, &inherited, sizeof(mask));
    memcpy(&own_word, &own, sizeof(own_word));
    word = (word & mask) | own_word;
    memcpy(traits, &word, sizeof(word));
}

static inline void set_parent(struct blkin_span *span, const struct blkin_span *parent, uint64_t id,
                              uint32_t kind)
{
    const uint64_t parent_id = parent->context.span_id; /* span may be its own parent */

    span->context = parent->context;
    span->context.parent_span_id = parent_id;
    span->context.span_id = id;
    inherit(&span->traits_, &parent->traits_, (uint8_t)kind);
}

void blkin_span_begin_child_(struct blkin_span *span, const char *name, size_t name_length,
                             uint32_t kind, const struct blkin_span *parent)
{
    set_parent(span, parent, blkin_id_next(blkin_this_thread()), kind);
    begin(span, name, name_length);
}

char *blkin_span_child_(struct blkin_span *span, size_t name_length, uint32_t kind,
                        const struct blkin_span *parent)
{
    const uint64_t id = blkin_id_try(&blkin_thread);

    if (__builtin_expect(id == 0 || !blkin_use_counter() ||
                             blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN),
                         0))
        return NULL;
    set_parent(span, parent, id, kind);
    set_frame(span, name_length);
    span->start_ticks_ = blkin_counter();
    return span_name(span);
}

/* ---- end ---- */

/* A span lasted duration ns until age ns before now. */
struct ending {
    uint64_t now_ticks;
    uint64_t duration;
    uint64_t age;
};

#define NOW UINT64_MAX /* for a time: the span ends with the call */

static struct ending ending_at(const struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t now_ns = time_ns == NOW ? 0 : blkin_monotonic_ns();
    const uint64_t age = time_ns < now_ns ? now_ns - time_ns : 0;
    const uint64_t now = blkin_ticks();
    const uint64_t whole = blkin_elapsed_ns(span->start_ticks_, now);

    return (struct ending){now, whole > age ? whole - age : 0, age};
}

/* All of the event but the times. Returns its end. */
static inline __attribute__((always_inline)) char *build_span(struct blkin_span *span,
                                                              const struct blkin_service *service,
                                                              const struct blkin_thread *thread)
{
    struct blkin_span_event *event = span_event(span);
    char *at = span_unused(span);

    *at++ = '\0'; /* of the log */
    at = blkin_put_block(at, service->strings, service->length);
    /* trace_id_high, trace_id, span_id and parent_id: the same in both */
    memcpy(event, &span->context, offsetof(struct blkin_span_event, duration));
    event->thread = thread->number;
    event->sequence = thread->sequence + 1;
    memcpy(&event->sampled, &span->traits_, sizeof(span->traits_)); /* to flags */
    event->port = service->port;
    return at;
}

static inline void record_span(struct blkin_span *span, struct blkin_thread *thread,
                               const char *end, uint64_t duration, uint64_t age)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_span_event *event = span_event(span);

    span->state_ = 0;
    event->duration = duration;
    event->age = age;
    if (__builtin_expect(!blkin_event_enabled(provider, BLKIN_EVENT_SPAN), 0))
        return;
    thread->sequence++;
    blkin_record_event(provider, BLKIN_EVENT_SPAN, event, (size_t)(end - (char *)event));
}

static uint64_t stream_end(struct blkin_span *span, uint64_t time_ns)
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

    span->state_ = 0;
    if (blkin_event_enabled(provider, BLKIN_EVENT_END)) {
        thread->sequence++;
        blkin_record_event(provider, BLKIN_EVENT_END, &event, sizeof(event));
    }
    return ending.now_ticks;
}

static uint64_t end_at(struct blkin_span *span, uint64_t time_ns)
{
    struct blkin_service own;
    const struct blkin_service *service = &own;
    struct blkin_thread *thread = blkin_this_thread();
    struct ending ending;
    const char *end;

    if (span->service_)
        blkin_service_prepare(&own, span->service_);
    else
        service = blkin_default_service();
    end = build_span(span, service, thread);
    ending = ending_at(span, time_ns);
    record_span(span, thread, end, ending.duration, ending.age);
    return ending.now_ticks;
}

void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t now_ticks =
        span->state_ == SPAN_STREAMING ? stream_end(span, time_ns) : end_at(span, time_ns);

    blkin_do_chores_if_due(now_ticks);
}

/*
 * The usual way ends with the call that records, so that it saves no registers. The clock is read
 * when all else is in place: nearest to LTTng's own time stamp.
 */
void blkin_span_end_(struct blkin_span *span)
{
    struct blkin_thread *thread = &blkin_thread;
    const struct blkin_service *service = __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);
    const char *end;
    uint64_t now;

    if (__builtin_expect(!span->limit_ || span->service_ || !thread->number, 0)) {
        blkin_span_end_at_(span, NOW);
        return;
    }
    end = build_span(span, service, thread);
    now = blkin_counter();
    if (blkin_chores_are_due(now))
        blkin_span_end_at_(span, NOW);
    else
        record_span(span, thread, end, blkin_elapsed_ns(span->start_ticks_, now), 0);
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
