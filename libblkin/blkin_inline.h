/*
 * The inline part of blkin.h. Programs include blkin.h, and do not use names of this file.
 *
 * A call on a span that is not recorded tests one byte and calls nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_INLINE_H_
#define BLKIN_INLINE_H_

#include "blkin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the library's functions ---- */

#ifndef BLKIN_DISABLE

/* *blkin_gate_ is 0 if nobody records spans, and the library looks for no agent. */
BLKIN_PUBLIC extern const int *blkin_gate_;

#endif

/* BLKIN_CALL_ marks functions that programs call without a PLT entry. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define BLKIN_CALL_ BLKIN_PUBLIC __attribute__((noplt))
#endif
#endif
#ifndef BLKIN_CALL_
#define BLKIN_CALL_ BLKIN_PUBLIC
#endif

/* One function for each operation on a recorded span. The inline code calls the begin functions if
 * a span may be recorded: these functions decide. */
BLKIN_CALL_ void blkin_span_begin_(struct blkin_span *span, size_t size, const char *name,
                                   size_t name_length, uint32_t kind,
                                   const struct blkin_context *context);
BLKIN_CALL_ void blkin_span_begin_child_(struct blkin_span *span, size_t size, const char *name,
                                         size_t name_length, uint32_t kind,
                                         const struct blkin_span *parent);
BLKIN_CALL_ void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                                      size_t length);
BLKIN_CALL_ void blkin_span_annotate_at_(struct blkin_span *span, uint32_t severity,
                                         const char *text, size_t length, uint64_t time_ns);
BLKIN_CALL_ void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                                        const char *value, size_t value_length);
BLKIN_CALL_ void blkin_span_tag_int64_(struct blkin_span *span, const char *key, size_t key_length,
                                       int64_t value);
BLKIN_CALL_ void blkin_span_tag_uint64_(struct blkin_span *span, const char *key, size_t key_length,
                                        uint64_t value);
BLKIN_CALL_ void blkin_span_tag_double_(struct blkin_span *span, const char *key, size_t key_length,
                                        double value);
BLKIN_CALL_ void blkin_span_tag_bool_(struct blkin_span *span, const char *key, size_t key_length,
                                      int value);
BLKIN_CALL_ void blkin_span_link_(struct blkin_span *span, const struct blkin_context *context);
BLKIN_CALL_ void blkin_span_set_name_(struct blkin_span *span, const char *name, size_t length);
BLKIN_CALL_ void blkin_span_set_remote_(struct blkin_span *span, const char *name, const char *ip,
                                        uint16_t port);
BLKIN_CALL_ void blkin_span_set_service_(struct blkin_span *span, const char *name, const char *ip,
                                         uint16_t port);
BLKIN_CALL_ void blkin_span_set_start_(struct blkin_span *span, uint64_t time_ns);
BLKIN_CALL_ void blkin_span_keep_(struct blkin_span *span, const char *why, size_t length);
BLKIN_CALL_ void blkin_span_end_(struct blkin_span *span);
BLKIN_CALL_ void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns);
BLKIN_CALL_ void blkin_span_drop_(struct blkin_span *span);
BLKIN_CALL_ void blkin_step_begin_(struct blkin_span *span, const char *name, size_t name_length,
                                   uint32_t kind);
BLKIN_CALL_ void blkin_step_end_(struct blkin_span *span);
BLKIN_CALL_ void blkin_step_context_(const struct blkin_span *span, struct blkin_context *context);

/* ---- is it recorded? ---- */

static inline int blkin_is_on(void)
{
#ifndef BLKIN_DISABLE
    const int *enabled = __atomic_load_n(&blkin_gate_, __ATOMIC_RELAXED);

    return __atomic_load_n(enabled, __ATOMIC_RELAXED) != 0;
#else
    return 0;
#endif
}

/* The compiler computes the length of a literal. */
static inline size_t blkin_length_(const char *text)
{
    return text ? __builtin_strlen(text) : 0;
}

/* Returns the length of a text of at most `length` bytes. */
static inline size_t blkin_length_within_(const char *text, size_t length)
{
    const char *end = text ? (const char *)__builtin_memchr(text, 0, length) : text;

    return end || !text ? (size_t)(end - text) : length;
}

static inline int blkin_has_trace_(const struct blkin_context *context)
{
    return (context->trace_id | context->trace_id_high) != 0;
}

/* Returns true if the trace's decision is "do not record". */
static inline int blkin_is_refused_(const struct blkin_context *context)
{
    return (context->flags & (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED |
                              BLKIN_CONTEXT_DEBUG)) == BLKIN_CONTEXT_DECIDED;
}

#define BLKIN_HAS_ENDED_ 128 /* bit of state_, with BLKIN_DEBUG=check only */

/*
 * BLKIN_IS_RECORDED_: the span is recorded.
 * BLKIN_IS_WANTED_: a root with this context (NULL: a new trace) may be recorded.
 * BLKIN_MAY_HAVE_CHILDREN_: a child of this span may be recorded, even while another thread ends
 * the span.
 */
#ifndef BLKIN_DISABLE
#define BLKIN_IS_RECORDED_(span) __builtin_expect((span)->state_ != 0, 0)
#define BLKIN_IS_WANTED_(context) \
    (blkin_is_on() && !((context) && blkin_has_trace_(context) && blkin_is_refused_(context)))
#define BLKIN_MAY_HAVE_CHILDREN_(span)                                               \
    (__builtin_expect(__atomic_load_n(&(span)->state_, __ATOMIC_RELAXED) != 0, 0) || \
     ((span)->has_context_ && !blkin_is_refused_(&(span)->context) && blkin_is_on()))
#else
#define BLKIN_IS_RECORDED_(span)       0
#define BLKIN_IS_WANTED_(context)      0
#define BLKIN_MAY_HAVE_CHILDREN_(span) 0
#endif

/* Begins a span that is not recorded. The span passes on the received context, because the next
 * process may record the trace. */
static inline void blkin_pass_on_(struct blkin_span *span, const struct blkin_context *context)
{
    if (context)
        span->context = *context;
    span->has_context_ = context != NULL;
    span->state_ = 0;
}

/* ---- begin ---- */

#define BLKIN_SPAN_INIT_                  \
    {                                     \
        {0, 0, 0, 0, 0, 0, 0}, 0, 0, {0}, \
        {                                 \
            0                             \
        }                                 \
    }

#define BLKIN_SPAN_ROOM_(size)                                                          \
    struct {                                                                            \
        uint64_t bytes_[(size) / sizeof(char[(size) >= BLKIN_SPAN_SIZE_MIN ? 8 : -1])]; \
    }

static inline void blkin_begin_remote_(struct blkin_span *span, size_t size, const char *name,
                                       size_t length, enum blkin_kind kind,
                                       const struct blkin_context *context)
{
    if (BLKIN_IS_WANTED_(context))
        blkin_span_begin_(span, size, name, length, kind, context);
    else
        blkin_pass_on_(span, context);
}

static inline void blkin_begin_(struct blkin_span *span, size_t size, const char *name,
                                size_t length, enum blkin_kind kind,
                                const struct blkin_span *parent)
{
    if (!parent)
        blkin_begin_remote_(span, size, name, length, kind, NULL);
    else if (BLKIN_MAY_HAVE_CHILDREN_(parent))
        blkin_span_begin_child_(span, size, name, length, kind, parent);
    else if (parent->has_context_)
        blkin_pass_on_(span, &parent->context);
    else
        blkin_pass_on_(span, NULL);
}

static inline void blkin_span_begin_remote(struct blkin_span *span, const char *name,
                                           enum blkin_kind kind,
                                           const struct blkin_context *context)
{
    blkin_begin_remote_(span, sizeof(*span), name, blkin_length_(name), kind, context);
}

static inline void blkin_span_begin(struct blkin_span *span, const char *name, enum blkin_kind kind,
                                    const struct blkin_span *parent)
{
    blkin_begin_(span, sizeof(*span), name, blkin_length_(name), kind, parent);
}

static inline struct blkin_span *blkin_span_in(void *room)
{
    struct blkin_span *span = (struct blkin_span *)room;

    __asm__("" : "+r"(span)); /* hides the size from the compiler */
    return span;
}

static inline struct blkin_span *blkin_span_begin_in(void *room, size_t size, const char *name,
                                                     enum blkin_kind kind,
                                                     const struct blkin_span *parent)
{
    struct blkin_span *span = blkin_span_in(room);

    blkin_begin_(span, size & ~(size_t)7, name, blkin_length_(name), kind, parent);
    return span;
}

static inline struct blkin_span *blkin_span_begin_remote_in(void *room, size_t size,
                                                            const char *name, enum blkin_kind kind,
                                                            const struct blkin_context *context)
{
    struct blkin_span *span = blkin_span_in(room);

    blkin_begin_remote_(span, size & ~(size_t)7, name, blkin_length_(name), kind, context);
    return span;
}

static inline int blkin_span_is_recorded(const struct blkin_span *span)
{
    (void)span;
    return BLKIN_IS_RECORDED_(span) ? !(span->state_ & BLKIN_HAS_ENDED_) : 0;
}

static inline const struct blkin_context *blkin_span_context(const struct blkin_span *span)
{
    static const struct blkin_context none = {0, 0, 0, 0, 0, 0, 0};

    return span->has_context_ ? &span->context : &none;
}

/* Defines a call that does nothing unless the span is recorded. */
#define BLKIN_ON_RECORDED_(name, parameters, call) \
    static inline void name parameters             \
    {                                              \
        if (BLKIN_IS_RECORDED_(span))              \
            call;                                  \
    }

/* clang-format off */

/* ---- annotations, tags, links and errors ---- */

BLKIN_ON_RECORDED_(blkin_span_annotate, (struct blkin_span *span, const char *text),
                   blkin_span_annotate_(span, BLKIN_INFO, text, blkin_length_(text)))
BLKIN_ON_RECORDED_(blkin_span_log,
                   (struct blkin_span *span, enum blkin_severity severity, const char *text),
                   blkin_span_annotate_(span, severity, text, blkin_length_(text)))
BLKIN_ON_RECORDED_(blkin_span_log_n,
                   (struct blkin_span *span, enum blkin_severity severity, const char *text,
                    size_t length),
                   blkin_span_annotate_(span, severity, text, blkin_length_within_(text, length)))
BLKIN_ON_RECORDED_(blkin_span_log_at,
                   (struct blkin_span *span, enum blkin_severity severity, const char *text,
                    uint64_t time_ns),
                   blkin_span_annotate_at_(span, severity, text, blkin_length_(text), time_ns))
BLKIN_ON_RECORDED_(blkin_span_tag_string,
                   (struct blkin_span *span, const char *key, const char *value),
                   blkin_span_tag_string_(span, key, blkin_length_(key), value,
                                          blkin_length_(value)))
BLKIN_ON_RECORDED_(blkin_span_tag_string_n,
                   (struct blkin_span *span, const char *key, const char *value, size_t length),
                   blkin_span_tag_string_(span, key, blkin_length_(key), value,
                                          blkin_length_within_(value, length)))
BLKIN_ON_RECORDED_(blkin_span_tag_int64, (struct blkin_span *span, const char *key, int64_t value),
                   blkin_span_tag_int64_(span, key, blkin_length_(key), value))
BLKIN_ON_RECORDED_(blkin_span_tag_uint64,
                   (struct blkin_span *span, const char *key, uint64_t value),
                   blkin_span_tag_uint64_(span, key, blkin_length_(key), value))
BLKIN_ON_RECORDED_(blkin_span_tag_double, (struct blkin_span *span, const char *key, double value),
                   blkin_span_tag_double_(span, key, blkin_length_(key), value))
BLKIN_ON_RECORDED_(blkin_span_tag_bool, (struct blkin_span *span, const char *key, int value),
                   blkin_span_tag_bool_(span, key, blkin_length_(key), value != 0))

static inline void blkin_span_error(struct blkin_span *span, const char *message)
{
    blkin_span_tag_string(span, "error", message);
}

BLKIN_ON_RECORDED_(blkin_span_link, (struct blkin_span *span, const struct blkin_context *context),
                   blkin_span_link_(span, context))
BLKIN_ON_RECORDED_(blkin_span_keep, (struct blkin_span *span, const char *why),
                   blkin_span_keep_(span, why, blkin_length_(why)))
BLKIN_ON_RECORDED_(blkin_span_set_name, (struct blkin_span *span, const char *name),
                   blkin_span_set_name_(span, name, blkin_length_(name)))
BLKIN_ON_RECORDED_(blkin_span_set_name_n,
                   (struct blkin_span *span, const char *name, size_t length),
                   blkin_span_set_name_(span, name, blkin_length_within_(name, length)))
BLKIN_ON_RECORDED_(blkin_span_set_remote,
                   (struct blkin_span *span, const char *name, const char *ip, uint16_t port),
                   blkin_span_set_remote_(span, name, ip, port))
BLKIN_ON_RECORDED_(blkin_span_set_service,
                   (struct blkin_span *span, const char *name, const char *ip, uint16_t port),
                   blkin_span_set_service_(span, name, ip, port))
BLKIN_ON_RECORDED_(blkin_span_set_start, (struct blkin_span *span, uint64_t time_ns),
                   blkin_span_set_start_(span, time_ns))

/* ---- end ---- */

BLKIN_ON_RECORDED_(blkin_span_end, (struct blkin_span *span), blkin_span_end_(span))
BLKIN_ON_RECORDED_(blkin_span_end_at, (struct blkin_span *span, uint64_t time_ns),
                   blkin_span_end_at_(span, time_ns))
BLKIN_ON_RECORDED_(blkin_span_drop, (struct blkin_span *span), blkin_span_drop_(span))

/* ---- steps ---- */

BLKIN_ON_RECORDED_(blkin_step_begin,
                   (struct blkin_span *span, const char *name, enum blkin_kind kind),
                   blkin_step_begin_(span, name, blkin_length_(name), kind))
BLKIN_ON_RECORDED_(blkin_step_end, (struct blkin_span *span), blkin_step_end_(span))
/* clang-format on */

static inline void blkin_step_context(const struct blkin_span *span, struct blkin_context *context)
{
    *context = *blkin_span_context(span);
    if (BLKIN_IS_RECORDED_(span))
        blkin_step_context_(span, context);
}

/* ---- macros ---- */

/* A statement expression of GNU C, marked so that -Wpedantic accepts it. */
#ifndef BLKIN_DISABLE
#define BLKIN_IF_(span, call)                           \
    __extension__({                                     \
        struct blkin_span *const blkin_it_ = (span);    \
        if (blkin_it_ && BLKIN_IS_RECORDED_(blkin_it_)) \
            call;                                       \
        (void)0;                                        \
    })
#else /* checks the types of the arguments, and evaluates none */
#define BLKIN_IF_(span, call)                        \
    (1 ? (void)0 : __extension__({                   \
        struct blkin_span *const blkin_it_ = (span); \
        call;                                        \
    }))
#endif

static inline void blkin_end_of_scope_(struct blkin_span *span)
{
    blkin_span_end(span);
}

#define BLKIN_SCOPE_(span, name, kind, parent)                            \
    __attribute__((cleanup(blkin_end_of_scope_))) struct blkin_span span; \
    blkin_span_begin(&(span), (name), (kind), (parent))

#define BLKIN_JOIN_(a, b)   a##b
#define BLKIN_BEFORE_(line) BLKIN_JOIN_(blkin_before_, line)
#define BLKIN_STEP_(line)   BLKIN_JOIN_(blkin_step_, line)

static inline struct blkin_span *blkin_step_begun_(struct blkin_span *span, const char *name,
                                                   enum blkin_kind kind)
{
    if (span)
        blkin_step_begin(span, name, kind);
    return span;
}

static inline void blkin_step_end_of_scope_(struct blkin_span **span)
{
    if (*span)
        blkin_step_end(*span);
}

#define BLKIN_STEP_SCOPE_(span, name, kind)                                                    \
    __attribute__((cleanup(blkin_step_end_of_scope_), unused)) struct blkin_span *BLKIN_STEP_( \
        __LINE__) = blkin_step_begun_((span), (name), (kind))

static inline void blkin_put_back_(struct blkin_span **before)
{
    (void)blkin_set_current(*before);
}

#define BLKIN_CURRENT_SCOPE_(span)                                                                 \
    __attribute__((cleanup(blkin_put_back_), unused)) struct blkin_span *BLKIN_BEFORE_(__LINE__) = \
        blkin_set_current(span)

#ifdef __cplusplus
}
#endif

#endif /* BLKIN_INLINE_H_ */
