/*
 * The begin and the end of a span; the remote side from a socket address; the current span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin.h"

#include "libblkin/base/address.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/provider.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/process/process.h"
#include "libblkin/span/span.h"
#include "libblkin/usage/usage.h"

#include <errno.h>

unsigned blkin_version(void)
{
    return BLKIN_VERSION;
}

/* ---- clock ---- */

uint64_t blkin_now(void)
{
    return blkin_clock_now();
}

uint64_t blkin_time(const struct timespec *monotonic)
{
    return (uint64_t)monotonic->tv_sec * 1000000000 + (uint64_t)monotonic->tv_nsec;
}

/* Other threads may read the state to begin a child. */
static inline void set_state(struct blkin_span *span, uint8_t state)
{
    __atomic_store_n(&span->state_, state, __ATOMIC_RELAXED);
}

/* ---- begin ---- */

/* Sets the span's ids: in the trace of `parent`, or in a new one. */
static HOT void set_ids(struct blkin_context *context, const struct blkin_context *parent,
                        struct blkin_thread *thread)
{
    if (parent && blkin_has_trace_(parent)) {
        const uint64_t parent_id = parent->span_id; /* parent may be context */

        *context = *parent;
        context->parent_span_id = parent_id;
        context->span_id = blkin_id_next(thread);
        return;
    }
    *context = (struct blkin_context){
        .trace_id_high = blkin_id_next(thread),
        .trace_id = blkin_id_next(thread),
        .flags = blkin_root_flags | (parent ? parent->flags : 0),
    };
    context->span_id = blkin_id_next(thread);
}

/* A trace has one decision: that of its context, if any, else that of this process's policy. */
static struct blkin_decision decide(const struct blkin_context *context, const char *name,
                                    size_t name_length)
{
    if (context->flags & BLKIN_CONTEXT_DEBUG)
        return (struct blkin_decision){true, 0};
    if (context->flags & (BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_SAMPLED)) /* SAMPLED implies it */
        return (struct blkin_decision){context->flags & BLKIN_CONTEXT_SAMPLED, 0};
    return blkin_sampling_decide(name, name_length, context->trace_id);
}

/*
 * While there are no rings, reading the counter costs more than the rest of a span that is not
 * recorded. So a thread that begins spans often reads the counter only at each LOOKS_EACH-th span.
 */
#define LOOKS_EACH        32
#define LOOKS_OFTEN_TICKS (UINT64_C(1) << 20) /* less than a millisecond */

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint64_t ticks;
    uint32_t left;
} looks;

__attribute__((noinline)) static bool look_for_rings(void)
{
    const uint64_t ticks = blkin_look_for_rings();
    const bool is_wanted = blkin_event_enabled(blkin_provider(), BLKIN_EVENT_SPAN);

    looks.left = ticks - looks.ticks < LOOKS_OFTEN_TICKS ? LOOKS_EACH - 1 : 0;
    looks.ticks = ticks;
    if (!is_wanted)
        blkin_missed_();
    return is_wanted;
}

/* Called while there are no rings. Looks for them now and then. Returns true if the span is wanted,
 * perhaps by LTTng. */
static inline bool look_rarely_for_rings(void)
{
    if (looks.left == 0)
        return look_for_rings();
    looks.left--;
    return blkin_event_enabled(blkin_provider(), BLKIN_EVENT_SPAN);
}

bool blkin_wants_spans_(bool looks_for_rings)
{
    if (looks_for_rings)
        (void)blkin_look_for_rings();
    return blkin_event_enabled(blkin_provider(), BLKIN_EVENT_SPAN);
}

/* Opens the library if needed. Returns false if no span is wanted. Acquire: a thread that sees the
 * pointer of an opened library also sees everything that the opening thread wrote before. */
static HOT bool wants_span(void)
{
    int word;

    if (__builtin_expect(!blkin_wiped.process_mark, 0))
        blkin_forked_();
    word = __atomic_load_n(__atomic_load_n(&blkin_gate_, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
    return __builtin_expect(word & BLKIN_LOOKS_FOR_RINGS, 0) ? look_rarely_for_rings() : word != 0;
}

static HOT void set_name(struct span_fields *inside, const char *name, size_t length)
{
    *blkin_put_bytes(inside->name, name, length) = '\0';
    inside->name_length = (uint8_t)length;
}

/* Returns the room for the name in a span of `size` bytes. */
static size_t room_for_name(size_t size)
{
    return size < SPAN_SIZE_USUAL ? size - SPAN_LOG_AT : SPAN_NAME_MAX;
}

/* The last part of each begin. The caller has set name, ids, kind and flags. */
static inline void begin(struct blkin_span *span, size_t size, uint64_t start_ns)
{
    struct span_fields *inside = span_inside(span);

    inside->size = inside->end = (uint16_t)size;
    inside->limit = (int16_t)size;
    inside->used = (uint16_t)span_log_at(inside);
    inside->failed = 0;
    inside->base_ns = start_ns;
    inside->dropped = inside->depth = 0;
    inside->next_step = 0;
    span->has_context_ = CONTEXT_OWN;
    set_state(span, SPAN_RECORDED);
}

/* Begins a span after the periodic work. While usage or checks are on, the periodic work is always
 * due, so their spans begin here, too. */
__attribute__((noinline)) static void begin_with_periodic(struct blkin_span *span, size_t size)
{
    struct span_fields *inside = span_inside(span);
    uint64_t start_ns = 0;

    blkin_do_periodic_if_due(blkin_ticks());
    inside->size = (uint16_t)size;
    if (blkin_usage_is_on() && size >= SPAN_SIZE_CHARGED)
        start_ns = blkin_usage_begin(span);
    begin(span, size, start_ns ? start_ns : blkin_clock_now());
    if (start_ns) {
        inside->end = (uint16_t)(size - sizeof(struct blkin_span_usage));
        inside->limit = (int16_t)inside->end;
        set_state(span, SPAN_RECORDED | SPAN_CHARGED);
    }
    if (blkin_usage_is_on() && size < SPAN_SIZE_CHARGED)
        span_drop_record(span, true);
    if (blkin_checks) {
        inside->limit = SPAN_SLOW;
        blkin_check_begun(span);
    }
}

__attribute__((noinline)) static void begin_streamed(struct blkin_span *span)
{
    struct span_fields *inside = span_inside(span);

    inside->limit = SPAN_SLOW;
    span_rest(inside)->unstreamed = 0;
    set_state(span, span->state_ | SPAN_STREAMED);
    blkin_stream_begin(span, &(struct stream_begin){
                                 .id = span->context.span_id,
                                 .parent_id = span->context.parent_span_id,
                                 .time_ns = inside->base_ns,
                                 .name = inside->name,
                                 .name_length = inside->name_length,
                                 .flags = inside->flags,
                                 .kind = inside->kind,
                             });
    inside->flags |= BLKIN_SPAN_STREAMED;
}

/* The last part of each begin on the slow path. */
static void begin_slow(struct blkin_span *span, size_t size)
{
    const uint64_t counter = blkin_counter();
    uint64_t start_ns;

    if (size > SPAN_SIZE_MAX)
        size = SPAN_SIZE_MAX;
    if (blkin_periodic_is_due(counter) || !blkin_clock_try(counter, &start_ns))
        begin_with_periodic(span, size);
    else
        begin(span, size, start_ns);
    if (blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN))
        begin_streamed(span);
}

/* Begins a span that is the root of a trace, or of this process's part of a trace. */
static HOT void begin_root(struct blkin_span *span, size_t size, const char *name,
                           size_t name_length, uint32_t kind, const struct blkin_context *context,
                           uint64_t id)
{
    const bool is_remote = context && context->flags & BLKIN_CONTEXT_REMOTE;
    struct span_fields *inside = span_inside(span);
    struct blkin_decision decision;

    if (!wants_span() || size < BLKIN_SPAN_SIZE_MIN) {
        blkin_pass_on_(span, context);
        return;
    }
    set_ids(&span->context, context, blkin_this_thread());
    if (id)
        span->context.span_id = id;
    decision = decide(&span->context, name, name_length);
    span->context.flags |= BLKIN_CONTEXT_DECIDED;
    span->context.flags &= ~(uint32_t)(BLKIN_CONTEXT_REMOTE | BLKIN_CONTEXT_SAMPLED);
    if (!decision.sampled) {
        span->has_context_ = CONTEXT_PASSED_ON;
        set_state(span, 0);
        /* A process that records nothing must also notice a changed sampling file. */
        blkin_do_periodic_if_due(blkin_ticks());
        if (blkin_usage_is_on())
            blkin_usage_turn_to_unknown();
        return;
    }
    span->context.flags |= BLKIN_CONTEXT_SAMPLED;
    (void)blkin_default_service(); /* makes the service, which record_span() reads */
    set_name(inside, name, blkin_cut(name, name_length, room_for_name(size)));
    inside->sampled = decision.ppm;
    inside->kind = (uint8_t)kind;
    inside->flags = (span->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0) |
                    (is_remote ? BLKIN_SPAN_REMOTE : 0);
    begin_slow(span, size);
}

void blkin_span_begin_(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                       uint32_t kind, const struct blkin_context *context)
{
    begin_root(span, size, name, name_length, kind, context, 0);
}

void blkin_begin_with_id(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                         uint32_t kind, const struct blkin_context *context, uint64_t id)
{
    begin_root(span, size, name, name_length, kind, context, id);
}

static HOT void set_child(struct blkin_span *span, const char *name, size_t name_length,
                          uint32_t kind, const struct blkin_span *parent, uint64_t id)
{
    const uint64_t parent_id = parent->context.span_id; /* span and parent may be the same memory */
    const struct span_fields *above = span_inside_const(parent);
    struct span_fields *inside = span_inside(span);

    span->context = parent->context;
    span->context.parent_span_id = parent_id;
    span->context.span_id = id;
    inside->sampled = above->sampled;
    inside->kind = (uint8_t)kind;
    /* not above->flags: another thread may be ending the parent, which overwrites them */
    inside->flags = parent->context.flags & BLKIN_CONTEXT_DEBUG ? BLKIN_SPAN_DEBUG : 0;
    set_name(inside, name, name_length);
}

__attribute__((noinline)) static void begin_child_slow(struct blkin_span *span, size_t size,
                                                       const char *name, size_t name_length,
                                                       uint32_t kind,
                                                       const struct blkin_span *parent)
{
    if (parent->has_context_ != CONTEXT_OWN || size < BLKIN_SPAN_SIZE_MIN) {
        blkin_span_begin_(span, size, name, name_length, kind, &parent->context);
        return;
    }
    if (!blkin_wiped.process_mark)
        blkin_forked_(); /* before the span gets its id */
    set_child(span, name, blkin_cut(name, name_length, room_for_name(size)), kind, parent,
              blkin_id_next(blkin_this_thread()));
    begin_slow(span, size);
}

static inline bool has_usual_size(size_t size)
{
    return size - SPAN_SIZE_USUAL <= SPAN_SIZE_MAX - SPAN_SIZE_USUAL;
}

/* The fast path calls nothing, so the function saves no registers, as in all functions with a fast
 * path. */
void blkin_span_begin_child_(struct blkin_span *span, size_t size, const char *name,
                             size_t name_length, uint32_t kind, const struct blkin_span *parent)
{
    uint64_t id, counter, start_ns;

    if (__builtin_expect(name_length > SPAN_NAME_MAX || !has_usual_size(size) ||
                             parent->has_context_ != CONTEXT_OWN ||
                             blkin_event_enabled(blkin_provider(), BLKIN_EVENT_BEGIN) ||
                             !(id = blkin_id_try(&blkin_thread)) ||
                             blkin_periodic_is_due(counter = blkin_counter()) ||
                             !blkin_clock_try(counter, &start_ns),
                         0)) {
        begin_child_slow(span, size, name, name_length, kind, parent);
        return;
    }
    set_child(span, name, name_length, kind, parent, id);
    begin(span, size, start_ns);
}

/* ---- end ---- */

static inline uint64_t duration_from(uint64_t start_ns, uint64_t end_ns)
{
    return end_ns > start_ns ? end_ns - start_ns : 0;
}

/* Puts the fixed part of the event before the name, and the head after the name. at: SPAN_EVENT_AT
 * of the span or of a copy. Reads the fields before it overwrites them. */
static HOT void put_event(bool by_pdep, char *at, const struct blkin_span *span, uint8_t flags,
                          uint64_t end_ns, uint64_t duration_ns, struct blkin_thread *thread)
{
    const struct span_fields *inside = span_inside_const(span);
    const uint16_t dropped = inside->dropped;
    const size_t name_length = inside->name_length;
    const struct blkin_span_event event = {
        .trace_id = span->context.trace_id,
        .parent_id = span->context.parent_span_id,
        .duration = duration_ns,
        .flags = flags,
        .kind = inside->kind,
    };

    memcpy(at, &event, sizeof(event));
    span_put_head(by_pdep, at + sizeof(event) + name_length + 1, span, span->context.span_id,
                  end_ns, thread, ++thread->sequence, dropped);
}

/* Records the span from a copy: the span's content is still needed, as for an alarm, or the event
 * is larger than the span, as with usage. */
__attribute__((noinline)) static void record_copy(struct blkin_span *span, uint64_t end_ns,
                                                  uint64_t duration_ns,
                                                  const struct blkin_provider *provider,
                                                  const struct blkin_usage_tags *usage)
{
    struct span_fields *inside = span_inside(span);
    const struct blkin_service *own = span_own_service(inside);
    const struct blkin_service *service = own ? own : blkin_default_service();
    const uint8_t error = inside->failed & SPAN_FAILED ? BLKIN_SPAN_ERROR : 0;
    char payload[SPAN_SIZE_MAX + sizeof(struct blkin_usage_tags) + sizeof(service->text)];
    char *at = payload + sizeof(struct blkin_span_event);

    at = blkin_put_bytes(at, inside->name, inside->used - offsetof(struct span_fields, name));
    put_event(blkin_has_pdep, payload, span, inside->flags | error, end_ns, duration_ns,
              blkin_this_thread());
    if (usage)
        at = blkin_put_bytes(at, usage->text, usage->length);
    at = blkin_put_bytes(at, service->text, service->length);
    blkin_record_event(provider, BLKIN_EVENT_SPAN, payload, (size_t)(at - payload));
    if (inside->failed & (SPAN_FAILED | SPAN_KEEP) || blkin_may_be_slow(duration_ns))
        blkin_slow_span(span, duration_ns, end_ns);
}

static HOT void record_in_place(bool by_pdep, struct blkin_span *span, uint64_t end_ns,
                                uint64_t duration_ns, const struct blkin_provider *provider,
                                const struct blkin_service *service)
{
    struct span_fields *inside = span_inside(span);
    char *payload = span_at(inside, SPAN_EVENT_AT);
    char *end = blkin_put_block(span_at(inside, inside->used), service->text, service->length);

    put_event(by_pdep, payload, span, inside->flags, end_ns, duration_ns, &blkin_thread);
    blkin_record_event(provider, BLKIN_EVENT_SPAN, payload, (size_t)(end - payload));
}

__attribute__((noinline)) static void record_by_shifts(struct blkin_span *span, uint64_t end_ns,
                                                       uint64_t duration_ns,
                                                       const struct blkin_provider *provider,
                                                       const struct blkin_service *service)
{
    record_in_place(false, span, end_ns, duration_ns, provider, service);
}

/* Returns true if the service fits behind the log. blkin_put_block() writes at least BLKIN_BLOCK
 * bytes. */
static inline bool has_room_for_service(const struct span_fields *inside,
                                        const struct blkin_service *service)
{
    const size_t size = service->length > BLKIN_BLOCK ? service->length : BLKIN_BLOCK;

    return inside->used + size <= inside->size;
}

/* Records a span without usage, open steps or errors: in place, or by record_copy() if needed. */
static HOT void record_span(struct blkin_span *span, uint64_t end_ns,
                            const struct blkin_provider *provider)
{
    const struct span_fields *inside = span_inside_const(span);
    const struct blkin_service *service = __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);
    const uint64_t duration_ns = duration_from(inside->base_ns, end_ns);

    if (__builtin_expect(blkin_may_be_slow(duration_ns) || !has_room_for_service(inside, service),
                         0))
        record_copy(span, end_ns, duration_ns, provider, NULL);
    else if (__builtin_expect(blkin_has_pdep, 1))
        record_in_place(true, span, end_ns, duration_ns, provider, service);
    else
        record_by_shifts(span, end_ns, duration_ns, provider, service);
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
 * The periodic work comes first, because it may change the clock. The whole span comes before its
 * streamed end: while readers have the streamed span open, they see that both are the same span.
 */
__attribute__((noinline)) void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns)
{
    const uint8_t state = span->state_;
    const uint64_t now = blkin_ticks();
    struct blkin_usage_tags usage;
    uint64_t now_ns, duration_ns;

    if (blkin_is_misuse(span, CHECK_END))
        return;
    blkin_do_periodic_if_due(now);
    now_ns = blkin_clock_ns(now);
    usage.length = 0;
    if (state & SPAN_CHARGED)
        blkin_usage_end(span, now_ns, time_ns >= now_ns, &usage);
    if (time_ns > now_ns)
        time_ns = now_ns;
    blkin_end_steps(span, time_ns, true);
    duration_ns = duration_from(span_start_ns(span), time_ns);
    set_state(span, blkin_checks ? BLKIN_HAS_ENDED_ : 0);
    /* If the event is off, only a session for streaming events is left. */
    if (blkin_event_enabled(blkin_provider(), BLKIN_EVENT_SPAN))
        record_copy(span, time_ns, duration_ns, blkin_provider(), &usage);
    else if (state & SPAN_RECORDED)
        blkin_missed_();
    if (state & SPAN_STREAMED) {
        stream_usage(span, time_ns, &usage);
        blkin_stream_dropped(span, time_ns);
        blkin_stream(span, span->context.span_id, BLKIN_EVENT_END, time_ns, NULL, 0);
    }
}

void blkin_span_end_(struct blkin_span *span)
{
    const struct blkin_provider *provider = blkin_provider();
    uint64_t counter, now_ns;

    if (__builtin_expect(span->state_ != SPAN_RECORDED || !blkin_thread.number ||
                             (span_inside(span)->depth | span_inside(span)->failed) ||
                             !blkin_event_enabled(provider, BLKIN_EVENT_SPAN) ||
                             blkin_periodic_is_due(counter = blkin_counter()) ||
                             !blkin_clock_try(counter, &now_ns),
                         0)) {
        blkin_span_end_at_(span, UINT64_MAX);
        return;
    }
    set_state(span, 0);
    record_span(span, now_ns, provider);
}

void blkin_span_drop_(struct blkin_span *span)
{
    if (blkin_is_misuse(span, CHECK_END))
        return;
    if (__builtin_expect(span->state_ != SPAN_RECORDED, 0)) {
        const uint64_t now_ns = blkin_clock_now();
        struct blkin_usage_tags none;

        if (span->state_ & SPAN_CHARGED)
            blkin_usage_end(span, now_ns, true, &none);
        if (span_is_streamed(span)) {
            blkin_end_steps(span, now_ns, false);
            blkin_stream(span, span->context.span_id, BLKIN_EVENT_END, now_ns, NULL, 0);
        }
    }
    set_state(span, blkin_checks ? BLKIN_HAS_ENDED_ : 0);
    span->has_context_ = CONTEXT_PASSED_ON;
    span->context.flags &= ~(uint32_t)(BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DEBUG);
}

/* ---- the remote side ---- */

void blkin_span_set_remote_sockaddr(struct blkin_span *span, const char *name,
                                    const struct sockaddr *address, size_t length)
{
    const int saved_errno = errno;
    char text[INET6_ADDRSTRLEN];
    uint16_t port;

    if (!blkin_span_is_recorded(span))
        return;
    port = blkin_address_text(address, length, text);
    blkin_span_set_remote_(span, name, text, port);
    errno = saved_errno;
}

/* ---- the current span ---- */

struct blkin_span *blkin_current(void)
{
    return blkin_thread.current;
}

struct blkin_span *blkin_set_current(struct blkin_span *span)
{
    struct blkin_span *before = blkin_thread.current;

    blkin_thread.current = span; /* first: a signal handler may change and restore it */
    if (blkin_usage_is_on())
        return blkin_usage_switch(span, before);
    return before;
}
