/*
 * The frame of a span: its begin and its end.
 *
 * What is in this folder is libblkin as of the format before packed texts and steps, in which a
 * span has 17 fields: frozen, for the benchmarks to compare with in the same run. The rest of the
 * library is today's, and so are the programs: build/tests/bench/before has this one to load.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "libblkin/sampling.h"
#include "libblkin/thread.h"

static const int not_known_yet = 1;

const int *blkin_gate_ = &not_known_yet;

unsigned blkin_version(void)
{
    return BLKIN_VERSION;
}

/* Other threads may be asking, to begin a child. */
static inline void set_state(struct blkin_span *span, uint8_t state)
{
    __atomic_store_n(&span->state_, state, __ATOMIC_RELAXED);
}

/* ---- streaming ---- */

__attribute__((noinline)) static void stream_begin(const struct blkin_span *span)
{
    const struct span *inside = span_inside_const(span);
    struct blkin_thread *thread = blkin_this_thread();
    const struct blkin_service *service = blkin_default_service();
    const struct blkin_begin_event event = {
        .trace_id_high = span->context.trace_id_high,
        .trace_id = span->context.trace_id,
        .span_id = span->context.span_id,
        .parent_id = span->context.parent_span_id,
        .monotonic = inside->start_ns,
        .thread = thread->number + 1,
        .sequence = ++thread->streamed_sequence,
        .sampled = inside->event.sampled,
        .port = service->port,
        .kind = inside->event.kind,
        .flags = inside->event.flags,
    };
    char payload[sizeof(event) + SPAN_NAME_MAX + 1 + sizeof(service->strings)];
    char *at = payload;

    at = blkin_put_bytes(at, &event, sizeof(event));
    at = blkin_put_bytes(at, inside->strings, inside->used - sizeof(inside->event));
    at = blkin_put_bytes(at, service->strings, service->length);
    blkin_record_event(blkin_provider(), BLKIN_EVENT_BEGIN, payload, (size_t)(at - payload));
}

__attribute__((noinline)) void blkin_stream(const struct blkin_span *span,
                                            enum blkin_packed_event kind, uint64_t time_ns,
                                            const char *text, size_t length)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread = blkin_this_thread();
    char payload[sizeof(struct blkin_detail_event) + SPAN_RECORD_MAX + 1];
    char *at = payload;

    if (!blkin_event_enabled(provider, kind))
        return;
    at = blkin_put_bytes(at,
                         &(struct blkin_detail_event){
                             .trace_id = span->context.trace_id,
                             .span_id = span->context.span_id,
                             .monotonic = time_ns,
                             .thread = thread->number + 1,
                             .sequence = ++thread->streamed_sequence,
                         },
                         sizeof(struct blkin_detail_event));
    if (text) {
        at = blkin_put_bytes(at, text, length);
        *at++ = '\0';
    }
    blkin_record_event(provider, kind, payload, (size_t)(at - payload));
}

/* ---- begin ---- */

static bool has_ids(const struct blkin_context *context)
{
    return context && (context->trace_id | context->trace_id_high);
}

/* The span's own ids, in the trace of parent or in a new one. */
static void set_ids(struct blkin_context *context, const struct blkin_context *parent,
                    struct blkin_thread *thread)
{
    if (has_ids(parent)) {
        const uint64_t parent_id = parent->span_id; /* parent may be context */

        *context = *parent;
        context->parent_span_id = parent_id;
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

/*
 * The provider is loaded; false if nobody wants spans.
 * acquire: who sees the gate that the loading has set sees all else that it has set.
 */
static bool is_loaded(void)
{
    if (__builtin_expect(__atomic_load_n(&blkin_gate_, __ATOMIC_ACQUIRE) != &not_known_yet, 1))
        return true;
    blkin_provider_load();
    return blkin_is_on();
}

static inline void set_name(struct span *inside, const char *name, size_t length)
{
    *blkin_put_bytes(inside->strings, name, length) = '\0';
    inside->used = (uint32_t)(sizeof(inside->event) + length + 1);
}

/* The rest of every begin: name, ids and what is in the event already are in place. */
static inline void begin(struct blkin_span *span, uint64_t start_ns)
{
    struct span *inside = span_inside(span);

    inside->event.dropped = 0;
    inside->service.length = 0;
    inside->start_ns = start_ns;
    inside->limit = SPAN_USED_MAX;
    span->has_context_ = CONTEXT_OWN;
    set_state(span, SPAN_RECORDED);
}

/* The same with all that may be due. */
static void begin_otherwise(struct blkin_span *span)
{
    uint64_t now = blkin_ticks();

    if (blkin_chores_are_due(now)) {
        blkin_do_chores(now);
        now = blkin_ticks();
    }
    begin(span, blkin_clock_ns(now));
    if (blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN)) {
        span_inside(span)->limit = 0;
        set_state(span, SPAN_RECORDED | SPAN_STREAMED);
        stream_begin(span);
    }
}

void blkin_span_begin_(struct blkin_span *span, const char *name, size_t name_length, uint32_t kind,
                       const struct blkin_context *context)
{
    const bool is_remote = context && context->flags & BLKIN_CONTEXT_REMOTE;
    struct span *inside = span_inside(span);
    struct blkin_decision decision;

    if (!is_loaded()) {
        blkin_pass_on_(span, context);
        return;
    }
    (void)blkin_default_service(); /* from now on there is one */
    set_name(inside, name, blkin_cut(name, name_length, SPAN_NAME_MAX));
    set_ids(&span->context, context, blkin_this_thread());
    decision = decide(&span->context, inside->strings);
    span->context.flags |= BLKIN_CONTEXT_DECIDED;
    span->context.flags &= ~(uint32_t)(BLKIN_CONTEXT_REMOTE | BLKIN_CONTEXT_SAMPLED);
    if (!decision.sampled) {
        span->has_context_ = CONTEXT_PASSED_ON;
        set_state(span, 0);
        /* a process that records nothing must see the sampling file change too */
        blkin_do_chores_if_due(blkin_ticks());
        return;
    }
    span->context.flags |= BLKIN_CONTEXT_SAMPLED;
    inside->event.sampled = decision.ppm;
    inside->event.kind = (uint8_t)kind;
    inside->event.flags = (span->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0) |
                          (is_remote ? BLKIN_SPAN_REMOTE : 0);
    begin_otherwise(span);
}

static inline void set_child(struct blkin_span *span, const char *name, size_t name_length,
                             uint32_t kind, const struct blkin_span *parent, uint64_t id)
{
    const uint64_t parent_id = parent->context.span_id; /* span may be its own parent */
    const struct blkin_span_event *above = &span_inside_const(parent)->event;
    struct span *inside = span_inside(span);

    span->context = parent->context;
    span->context.parent_span_id = parent_id;
    span->context.span_id = id;
    inside->event.sampled = above->sampled;
    inside->event.kind = (uint8_t)kind;
    inside->event.flags = above->flags & (uint8_t)~BLKIN_SPAN_REMOTE;
    set_name(inside, name, name_length);
}

__attribute__((noinline)) static void begin_child_otherwise(struct blkin_span *span,
                                                            const char *name, size_t name_length,
                                                            uint32_t kind,
                                                            const struct blkin_span *parent)
{
    if (parent->has_context_ != CONTEXT_OWN) {
        blkin_span_begin_(span, name, name_length, kind, &parent->context);
        return;
    }
    set_child(span, name, blkin_cut(name, name_length, SPAN_NAME_MAX), kind, parent,
              blkin_id_next(blkin_this_thread()));
    begin_otherwise(span);
}

/* Here and below: the usual way calls nothing, so that it saves no registers. */
void blkin_span_begin_child_(struct blkin_span *span, const char *name, size_t name_length,
                             uint32_t kind, const struct blkin_span *parent)
{
    uint64_t id, counter, start_ns;

    if (__builtin_expect(name_length > SPAN_NAME_MAX || parent->has_context_ != CONTEXT_OWN ||
                             blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN) ||
                             !(id = blkin_id_try(&blkin_thread)) ||
                             blkin_chores_are_due(counter = blkin_counter()) ||
                             !(start_ns = blkin_clock_try(counter)),
                         0)) {
        begin_child_otherwise(span, name, name_length, kind, parent);
        return;
    }
    set_child(span, name, name_length, kind, parent, id);
    begin(span, start_ns);
}

/* ---- end ---- */

/* The rest of the event. */
static inline void record_span(struct blkin_span *span, uint64_t end_ns,
                               const struct blkin_provider *provider, struct blkin_thread *thread)
{
    struct span *inside = span_inside(span);
    struct blkin_span_event *event = &inside->event;
    const struct blkin_service *service = __builtin_expect(inside->service.length, 0)
                                              ? &inside->service
                                              : __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);
    char *at = (char *)event + inside->used;

    *at++ = '\0'; /* of the log */
    at = blkin_put_block(at, service->strings, service->length);
    /* trace_id_high, trace_id, span_id and parent_id: the same in both */
    memcpy(event, &span->context, offsetof(struct blkin_span_event, duration));
    event->duration = end_ns > inside->start_ns ? end_ns - inside->start_ns : 0;
    event->monotonic = end_ns;
    event->thread = thread->number;
    event->sequence = ++thread->sequence;
    event->port = service->port;
    blkin_record_event(provider, BLKIN_EVENT_SPAN, event, (size_t)(at - (char *)event));
}

/*
 * The chores come first: if the clocks have come apart, as in a suspend, that is seen here. Of both
 * forms the whole one comes first: who reads them knows it by the streamed one that is still open,
 * and that one ends once.
 */
__attribute__((noinline)) void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns)
{
    const struct blkin_provider *provider = blkin_provider();
    const uint8_t state = span->state_;
    const uint64_t now = blkin_ticks();
    uint64_t now_ns;

    blkin_do_chores_if_due(now);
    now_ns = blkin_clock_ns(now);
    if (time_ns > now_ns)
        time_ns = now_ns;
    set_state(span, 0);
    if (blkin_event_enabled(provider, BLKIN_EVENT_SPAN))
        record_span(span, time_ns, provider, blkin_this_thread());
    if (state & SPAN_STREAMED)
        blkin_stream(span, BLKIN_EVENT_END, time_ns, NULL, 0);
}

void blkin_span_end_(struct blkin_span *span)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread = &blkin_thread;
    uint64_t counter, now_ns;

    if (__builtin_expect(span->state_ != SPAN_RECORDED || !thread->number ||
                             !blkin_event_enabled(provider, BLKIN_EVENT_SPAN) ||
                             blkin_chores_are_due(counter = blkin_counter()) ||
                             !(now_ns = blkin_clock_try(counter)),
                         0)) {
        blkin_span_end_at_(span, UINT64_MAX);
        return;
    }
    set_state(span, 0);
    record_span(span, now_ns, provider, thread);
}

void blkin_span_drop_(struct blkin_span *span)
{
    if (span_is_streamed(span))
        blkin_stream(span, BLKIN_EVENT_END, span_now_ns(), NULL, 0);
    set_state(span, 0);
    span->has_context_ = CONTEXT_PASSED_ON;
    span->context.flags &= ~(uint32_t)(BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DEBUG);
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

/* ---- steps: today's programs are to load, this format has none ---- */

void blkin_step_begin_(struct blkin_span *span, const char *name, size_t name_length, uint32_t kind)
{
    (void)span;
    (void)name;
    (void)name_length;
    (void)kind;
}

void blkin_step_end_(struct blkin_span *span)
{
    (void)span;
}

void blkin_step_context_(const struct blkin_span *span, struct blkin_context *context)
{
    (void)span;
    (void)context;
}
