/*
 * The frame of a span: its begin and its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin.h"

#include "libblkin/base/chores.h"
#include "libblkin/base/provider.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/process/process.h"
#include "libblkin/span/slow_span.h"
#include "libblkin/span/span.h"
#include "libblkin/span/span_log.h"
#include "libblkin/span/step.h"
#include "libblkin/span/stream.h"
#include "libblkin/usage/usage.h"

unsigned blkin_version(void)
{
    return BLKIN_VERSION;
}

/* Other threads may be asking, to begin a child. */
static inline void set_state(struct blkin_span *span, uint8_t state)
{
    __atomic_store_n(&span->state_, state, __ATOMIC_RELAXED);
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
    if (__builtin_expect(!*blkin_process_mark_, 0))
        blkin_forked_();
    if (__builtin_expect(__atomic_load_n(&blkin_gate_, __ATOMIC_ACQUIRE) != &blkin_not_known_yet,
                         1))
        return true;
    blkin_process_load();
    return blkin_is_on();
}

static inline __attribute__((always_inline)) void set_name(struct span *inside, const char *name,
                                                           size_t length)
{
    *blkin_put_bytes(inside->strings, name, length) = '\0';
    inside->name_length = (uint8_t)length;
    inside->used = (uint32_t)(sizeof(inside->event) + length + 1 + BLKIN_HEAD_SIZE);
}

/* The rest of every begin: name, ids and what is in the event already are in place. */
static inline void begin(struct blkin_span *span, uint64_t start_ns)
{
    struct span *inside = span_inside(span);

    inside->start_ns = inside->base_ns = start_ns;
    inside->limit = SPAN_USED_MAX;
    inside->step_number = inside->step_logged = 0;
    inside->lost_depth = 0;
    inside->dropped = inside->unstreamed = inside->failed = 0;
    inside->depth = 0;
    inside->service.length = 0;
    span->has_context_ = CONTEXT_OWN;
    set_state(span, SPAN_RECORDED);
}

/* The same with all that may be due. */
static void begin_otherwise(struct blkin_span *span)
{
    struct span *inside = span_inside(span);
    const uint64_t now = blkin_ticks();
    uint64_t start_ns = 0;
    uint8_t state = SPAN_RECORDED;

    if (!blkin_chores_are_due(now)) {
        start_ns = blkin_clock_ns(now);
    } else {
        blkin_do_chores(now);
        if (blkin_usage_is_on() && (start_ns = blkin_usage_begin(span)))
            state |= SPAN_CHARGED;
        else
            start_ns = span_now_ns();
    }
    begin(span, start_ns);
    if (state != SPAN_RECORDED)
        set_state(span, state);
    if (blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN)) {
        inside->limit = 0;
        set_state(span, state | SPAN_STREAMED);
        blkin_stream_begin(span, &(struct stream_begin){
                                     .id = span->context.span_id,
                                     .parent_id = span->context.parent_span_id,
                                     .time_ns = inside->start_ns,
                                     .name = inside->strings,
                                     .name_length = inside->name_length,
                                     .flags = inside->event.flags,
                                     .kind = inside->event.kind,
                                 });
        inside->event.flags |= BLKIN_SPAN_STREAMED;
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
        if (blkin_usage_is_on())
            blkin_usage_turn_away();
        return;
    }
    span->context.flags |= BLKIN_CONTEXT_SAMPLED;
    inside->sampled = decision.ppm;
    inside->event.kind = (uint8_t)kind;
    inside->event.flags = (span->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0) |
                          (is_remote ? BLKIN_SPAN_REMOTE : 0);
    begin_otherwise(span);
}

static inline void set_child(struct blkin_span *span, const char *name, size_t name_length,
                             uint32_t kind, const struct blkin_span *parent, uint64_t id)
{
    const uint64_t parent_id = parent->context.span_id; /* span may be its own parent */
    const struct span *above = span_inside_const(parent);
    struct span *inside = span_inside(span);

    span->context = parent->context;
    span->context.parent_span_id = parent_id;
    span->context.span_id = id;
    inside->sampled = above->sampled;
    inside->event.kind = (uint8_t)kind;
    /* not those of its event, which its end, in another thread perhaps, may be changing */
    inside->event.flags = parent->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0;
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

/* One that failed, is to be kept, or may be slow. */
__attribute__((noinline)) static void record_remarkable(struct blkin_span *span, uint64_t end_ns,
                                                        const struct blkin_provider *provider,
                                                        size_t length)
{
    struct span *inside = span_inside(span);

    if (inside->failed & ~SPAN_KEEP)
        inside->event.flags |= BLKIN_SPAN_ERROR;
    blkin_record_event(provider, BLKIN_EVENT_SPAN, &inside->event, length);
    blkin_slow_span(span, end_ns);
}

static inline const struct blkin_service *service_of(const struct span *inside)
{
    return __builtin_expect(inside->service.length, 0)
               ? &inside->service
               : __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);
}

/* All of the event before its log. */
static inline __attribute__((always_inline)) void
finish_event(bool by_pdep, struct blkin_span *span, uint64_t end_ns, struct blkin_thread *thread)
{
    struct span *inside = span_inside(span);
    struct blkin_span_event *event = &inside->event;

    event->trace_id = span->context.trace_id;
    event->parent_id = span->context.parent_span_id;
    event->duration = end_ns > inside->start_ns ? end_ns - inside->start_ns : 0;
    span_put_head(by_pdep, span_head(inside), span, span->context.span_id, end_ns, thread,
                  ++thread->sequence, inside->dropped);
}

static inline __attribute__((always_inline)) void
record_span_by(bool by_pdep, struct blkin_span *span, uint64_t end_ns,
               const struct blkin_provider *provider, struct blkin_thread *thread)
{
    struct span *inside = span_inside(span);
    struct blkin_span_event *event = &inside->event;
    const struct blkin_service *service = service_of(inside);
    char *at = span_at(inside, inside->used);

    at = blkin_put_block(at, service->text, service->length);
    finish_event(by_pdep, span, end_ns, thread);
    if (__builtin_expect(inside->failed || blkin_may_be_slow(event->duration), 0))
        record_remarkable(span, end_ns, provider, (size_t)(at - (char *)event));
    else
        blkin_record_event(provider, BLKIN_EVENT_SPAN, event, (size_t)(at - (char *)event));
}

__attribute__((noinline)) static void record_span_by_shifts(struct blkin_span *span,
                                                            uint64_t end_ns,
                                                            const struct blkin_provider *provider,
                                                            struct blkin_thread *thread)
{
    record_span_by(false, span, end_ns, provider, thread);
}

static inline __attribute__((always_inline)) void record_span(struct blkin_span *span,
                                                              uint64_t end_ns,
                                                              const struct blkin_provider *provider,
                                                              struct blkin_thread *thread)
{
    if (__builtin_expect(blkin_has_pdep, 1))
        record_span_by(true, span, end_ns, provider, thread);
    else
        record_span_by_shifts(span, end_ns, provider, thread);
}

/* Where the service has its place else, there is what is kept of the usage. */
__attribute__((noinline)) static void record_charged_span(struct blkin_span *span, uint64_t end_ns,
                                                          const struct blkin_provider *provider,
                                                          const struct blkin_usage_tags *tags)
{
    struct span *inside = span_inside(span);
    const struct blkin_service *service = service_of(inside);
    char payload[SPAN_USED_MAX_OF_STEPS + sizeof(tags->text) + sizeof(service->text)];
    char *at;

    if (inside->failed & ~SPAN_KEEP)
        inside->event.flags |= BLKIN_SPAN_ERROR;
    finish_event(blkin_has_pdep, span, end_ns, blkin_this_thread());
    at = blkin_put_bytes(payload, &inside->event, inside->used);
    at = blkin_put_bytes(at, tags->text, tags->length);
    at = blkin_put_bytes(at, service->text, service->length);
    blkin_record_event(provider, BLKIN_EVENT_SPAN, payload, (size_t)(at - payload));
    if (inside->failed || blkin_may_be_slow(inside->event.duration))
        blkin_slow_span(span, end_ns);
}

static void stream_usage(const struct blkin_span *span, uint64_t end_ns,
                         const struct blkin_usage_tags *tags)
{
    size_t size;

    for (const char *tag = tags->text; tag < tags->text + tags->length; tag += size) {
        size = blkin_usage_tag_size(tag);
        blkin_stream(span, span->context.span_id, BLKIN_EVENT_TAG, end_ns, tag, size);
    }
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
    struct blkin_usage_tags usage;
    uint64_t now_ns;

    blkin_do_chores_if_due(now);
    now_ns = blkin_clock_ns(now);
    usage.length = 0;
    if (state & SPAN_CHARGED)
        blkin_usage_end(span, now_ns, time_ns >= now_ns, &usage);
    if (time_ns > now_ns)
        time_ns = now_ns;
    blkin_end_steps(span, time_ns, true);
    set_state(span, 0);
    if (!blkin_event_enabled(provider, BLKIN_EVENT_SPAN))
        ; /* streamed, as it seems */
    else if (state & SPAN_CHARGED)
        record_charged_span(span, time_ns, provider, &usage);
    else
        record_span(span, time_ns, provider, blkin_this_thread());
    if (state & SPAN_STREAMED) {
        stream_usage(span, time_ns, &usage);
        blkin_stream_dropped(span, time_ns);
        blkin_stream(span, span->context.span_id, BLKIN_EVENT_END, time_ns, NULL, 0);
    }
}

void blkin_span_end_(struct blkin_span *span)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread = &blkin_thread;
    uint64_t counter, now_ns;

    if (__builtin_expect(span->state_ != SPAN_RECORDED || !thread->number ||
                             span_has_open_steps(span_inside(span)) ||
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
    if (__builtin_expect(span->state_ != SPAN_RECORDED, 0)) {
        const uint64_t now_ns = span_now_ns();
        struct blkin_usage_tags none;

        if (span->state_ & SPAN_CHARGED)
            blkin_usage_end(span, now_ns, true, &none);
        if (span_is_streamed(span)) {
            blkin_end_steps(span, now_ns, false);
            blkin_stream(span, span->context.span_id, BLKIN_EVENT_END, now_ns, NULL, 0);
        }
    }
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

    blkin_thread.current = span; /* first: a signal handler puts back what it has found */
    if (blkin_usage_is_on())
        return blkin_usage_switch(span, before);
    return before;
}
