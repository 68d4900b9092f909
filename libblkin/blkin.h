/*
 * BlkKin's span API: where a request spends its time, at the cost of one LTTng event per span.
 *
 *     struct blkin_span span;
 *
 *     blkin_span_begin_remote(&span, "write", BLKIN_SERVER, &request->context);
 *     blkin_span_tag_int64(&span, "offset", offset);
 *     blkin_span_annotate(&span, "queued");
 *     ...
 *     blkin_span_end(&span);
 *
 * Spans. A span is a struct of the caller, on the stack or inside a request; nothing is allocated,
 * locked or sent. It needs no initialisation before blkin_span_begin*(), and no call to release it:
 * a span that is never ended is never seen. One thread may begin it and another one end it, as I/O
 * completions do, but two threads must not use one span at the same time.
 *
 * Recording. A span is recorded if, when it begins, an LTTng session has the event "blkin:span"
 * enabled, and its trace is sampled; in streaming events, as they happen, if "blkin:begin" is
 * enabled too (as by "blkin:*"). Every other call on a span that is not recorded costs one test of
 * a byte. What a recorded span takes beyond BLKIN_SPAN_LOG bytes of annotations and tags is dropped
 * and counted in the span.
 *
 * Strings are copied; only the service of blkin_span_set_service() is borrowed, until
 * blkin_span_end(). NULL is taken as "". Any bytes are allowed.
 *
 * Times are in ns of CLOCK_MONOTONIC.
 *
 * Threads and signals. Every function may be called from any thread, and all but those of "the
 * process" and "sampling" from a signal handler, on spans of the handler's own: it must not touch
 * one that the code under it may be using. Not so for the first span of a process, which loads the
 * provider: call blkin_init() before; nor for that of a thread: call blkin_init_thread(). See
 * doc/library.md.
 *
 * Nothing fails: functions return nothing, and errno is left alone.
 *
 * -DBLKIN_DISABLE makes every function here an empty inline one, and needs no library. Files of one
 * program may disagree on it: what one of them has begun, the other one sees as not recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_H
#define BLKIN_H

#include "blkin_context.h"
#include "zipkin_c.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zipkin's span kinds. */
enum blkin_kind {
    BLKIN_INTERNAL = 0, /* work inside one service */
    BLKIN_CLIENT,       /* a request to another service, until its reply */
    BLKIN_SERVER,       /* a request of another service, until our reply */
    BLKIN_PRODUCER,     /* a message was sent to a queue */
    BLKIN_CONSUMER      /* a message was taken from a queue */
};

/* Severities of annotations: those of syslog(3), and the log levels of the streaming events. */
enum blkin_severity {
    BLKIN_EMERG = 0,
    BLKIN_ALERT,
    BLKIN_CRIT,
    BLKIN_ERR,
    BLKIN_WARNING,
    BLKIN_NOTICE,
    BLKIN_INFO,
    BLKIN_DEBUG
};

#define BLKIN_SPAN_LOG 512 /* bytes of annotations and tags that a recorded span holds */

/* The members that end in _ are the library's own and may change. */
struct blkin_span {
    struct blkin_context context; /* to be read by blkin_span_context() */
    uint8_t state_;               /* 0: not recorded. A byte: it is tested in memory */
    uint8_t has_context_;         /* else context has never been set */
    uint16_t limit_;              /* of used_ for the usual ways; 0: none of them */
    uint32_t used_;               /* bytes of record_ */
    struct blkin_span_traits_ {   /* as in the event */
        uint32_t sampled_ppm;
        uint16_t dropped;
        uint8_t kind;
        uint8_t flags;
    } traits_;
    uint64_t start_ticks_;
    const struct blkin_endpoint *service_;
    uint64_t record_[(BLKIN_SPAN_LOG + 352) / 8]; /* written only while the span is recorded */
};

#ifndef BLKIN_DISABLE

/* ---- the process ------------------------------------------------------------------------------
 */

/*
 * The service of all spans that do not say otherwise: its name, address and listening port.
 * Borrowed for as long as the process runs; NULL brings back the default, the program's name.
 * Any thread, but meant for the start of main(), beside blkin_init() of zipkin_c.h.
 */
BLKIN_PUBLIC void blkin_set_service(const struct blkin_endpoint *service);

/*
 * A version to show in process events, such as "ceph-osd 19.2.0". Borrowed likewise.
 */
BLKIN_PUBLIC void blkin_set_version(const char *version);

/*
 * Emits the event "blkin:process" if it is due: service, pid, version, wall clock and sampling.
 * Recorded spans do this by themselves once a second; a daemon that may be idle for long calls it
 * from a timer it has anyway, so that readers see time go on. Costs a few ns when not due.
 */
BLKIN_PUBLIC void blkin_heartbeat(void);

/* ---- sampling ---------------------------------------------------------------------------------
 */

/*
 * Sets how the traces that this process starts are sampled: "always", "never", "ratio=0.01",
 * "rate=100" (traces per second), each optionally followed by rules for names of root spans, as
 * in "ratio=0.01,scrub:never,recover*:always", and by the least severity that annotations are
 * recorded with in one event per span, as in "always,severity=notice". A trace that comes with a
 * decision keeps it, and a debug flag means "always". The environment variable BLKIN_SAMPLING sets
 * the same at start, and a sampling file changes it from outside at any time: see doc/library.md.
 * Returns 0, or -EINVAL, and nothing changed, for another text.
 */
BLKIN_PUBLIC int blkin_set_sampling(const char *policy);

/* ---- is anybody looking? ----------------------------------------------------------------------
 */

BLKIN_PUBLIC extern const int *blkin_gate_; /* *blkin_gate_ is not 0: blkin:span is enabled */

/*
 * True if a session wants spans, or that is not known yet: to leave out, at the cost of a load and
 * a test, what is only done for spans. Async-signal-safe.
 */
static inline int blkin_is_on(void)
{
    const int *gate = __atomic_load_n(&blkin_gate_, __ATOMIC_RELAXED);

    return __atomic_load_n(gate, __ATOMIC_RELAXED) != 0;
}

/* ---- implementation of the inline part: not for use -------------------------------------------
 */

/* Called by its address, without the jump of a PLT. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define BLKIN_NEAR_ BLKIN_PUBLIC __attribute__((noplt))
#endif
#endif
#ifndef BLKIN_NEAR_
#define BLKIN_NEAR_ BLKIN_PUBLIC
#endif

BLKIN_NEAR_ void blkin_span_begin_(struct blkin_span *span, const char *name, size_t name_length,
                                   uint32_t kind, const struct blkin_context *parent);
BLKIN_NEAR_ void blkin_span_begin_child_(struct blkin_span *span, const char *name,
                                         size_t name_length, uint32_t kind,
                                         const struct blkin_span *parent);
BLKIN_NEAR_ char *blkin_span_child_(struct blkin_span *span, size_t name_length, uint32_t kind,
                                    const struct blkin_span *parent);
BLKIN_NEAR_ void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                                      size_t length);
BLKIN_NEAR_ char *blkin_span_annotation_(struct blkin_span *span, char severity, size_t length);
BLKIN_NEAR_ void blkin_span_annotate_at_(struct blkin_span *span, uint32_t severity,
                                         const char *text, size_t length, uint64_t time_ns);
BLKIN_NEAR_ void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                                        const char *value, size_t value_length);
BLKIN_NEAR_ char *blkin_span_string_(struct blkin_span *span, uint32_t lengths, size_t size);
BLKIN_NEAR_ void blkin_span_tag_number_(struct blkin_span *span, char type, const char *key,
                                        size_t key_length, uint64_t bits);
BLKIN_NEAR_ char *blkin_span_number_(struct blkin_span *span, uint32_t head, size_t size,
                                     uint64_t bits);
BLKIN_NEAR_ void blkin_span_set_remote_(struct blkin_span *span,
                                        const struct blkin_endpoint *remote);
BLKIN_NEAR_ void blkin_span_set_start_(struct blkin_span *span, uint64_t time_ns);
BLKIN_NEAR_ void blkin_span_end_(struct blkin_span *span);
BLKIN_NEAR_ void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns);

#define BLKIN_UNLIKELY_(condition) (__builtin_expect(!!(condition), 0) != 0)

/* A constant for a literal. */
static inline size_t blkin_length_(const char *text)
{
    return text ? __builtin_strlen(text) : 0;
}

/*
 * The texts of literals are copied here, where the compiler does it with a store or two, to the
 * place that the library names. If it names none, its other function does the whole.
 */
#define BLKIN_IS_LITERAL_(length) (__builtin_constant_p(length) && (length)-1 < 63)

/* Four characters as they lie in memory: the heads of what is logged are constants, too. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BLKIN_CHARS_(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#else
#define BLKIN_CHARS_(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))
#endif

static inline __attribute__((always_inline)) void
blkin_begin_child_(struct blkin_span *span, const char *name, size_t length, uint32_t kind,
                   const struct blkin_span *parent)
{
    char *at;

    if (BLKIN_IS_LITERAL_(length) && (at = blkin_span_child_(span, length, kind, parent)))
        __builtin_memcpy(at, name, length);
    else
        blkin_span_begin_child_(span, name, length, kind, parent);
}

static inline __attribute__((always_inline)) void
blkin_annotate_(struct blkin_span *span, uint32_t severity, const char *text, size_t length)
{
    char *at;

    if (BLKIN_IS_LITERAL_(length) &&
        (at = blkin_span_annotation_(span, (char)('0' + (severity & 7)), length)))
        __builtin_memcpy(at, text, length);
    else
        blkin_span_annotate_(span, severity, text, length);
}

static inline __attribute__((always_inline)) void
blkin_tag_string_(struct blkin_span *span, const char *key, size_t key_length, const char *value,
                  size_t value_length)
{
    char *at;

    if (BLKIN_IS_LITERAL_(key_length) && BLKIN_IS_LITERAL_(value_length) &&
        (at = blkin_span_string_(span, BLKIN_CHARS_('0' + key_length, '0', '0' + value_length, '0'),
                                 5 + key_length + value_length))) {
        __builtin_memcpy(at, key, key_length);
        __builtin_memcpy(at + key_length, value, value_length);
    } else {
        blkin_span_tag_string_(span, key, key_length, value, value_length);
    }
}

static inline __attribute__((always_inline)) void
blkin_tag_number_(struct blkin_span *span, char type, const char *key, size_t length, uint64_t bits)
{
    char *at;

    if (BLKIN_IS_LITERAL_(length) &&
        (at =
             blkin_span_number_(span, BLKIN_CHARS_(type, '0' + length, '0', 0), 19 + length, bits)))
        __builtin_memcpy(at, key, length);
    else
        blkin_span_tag_number_(span, type, key, length, bits);
}

/* Has the sender decided against this trace? (Of those it has not quite, the library finds out.) */
static inline int blkin_is_refused_(const struct blkin_context *context)
{
    return context->trace_id && (context->flags & (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED |
                                                   BLKIN_CONTEXT_DEBUG)) == BLKIN_CONTEXT_DECIDED;
}

/* A span that is not recorded: one store. */
static inline void blkin_frame_(struct blkin_span *span, uint8_t has_context)
{
    span->state_ = 0;
    span->has_context_ = has_context;
    span->limit_ = 0;
}

/* ---- spans ------------------------------------------------------------------------------------
 */

/*
 * Begins a span below a context that came from another process (see blkin_context.h), or below none
 * (NULL, or a context without ids): then it is the root of a new trace, if that is sampled. The
 * context's strings must live as long as the span.
 */
static inline void blkin_span_begin_remote(struct blkin_span *span, const char *name,
                                           enum blkin_kind kind,
                                           const struct blkin_context *context)
{
    if (!context) {
        if (BLKIN_UNLIKELY_(blkin_is_on()))
            blkin_span_begin_(span, name, blkin_length_(name), kind, 0);
        else
            blkin_frame_(span, 0);
    } else if (!blkin_is_on() || blkin_is_refused_(context)) {
        span->context = *context; /* the next process may be traced though this one is not */
        blkin_frame_(span, 1);
    } else {
        blkin_span_begin_(span, name, blkin_length_(name), kind, context);
    }
}

/* Begins a span below another one of this process, or a new trace if parent is NULL. */
static inline void blkin_span_begin(struct blkin_span *span, const char *name, enum blkin_kind kind,
                                    const struct blkin_span *parent)
{
    if (!parent) {
        blkin_span_begin_remote(span, name, kind, 0);
    } else if (BLKIN_UNLIKELY_(parent->state_)) {
        blkin_begin_child_(span, name, blkin_length_(name), kind, parent);
    } else if (parent->has_context_) {
        /* the parent knows best: a trace is recorded whole or not at all */
        span->context = parent->context;
        blkin_frame_(span, 1);
    } else {
        blkin_frame_(span, 0);
    }
}

/* True if what is recorded on the span is seen by somebody: to skip costly preparations. */
static inline int blkin_span_is_recorded(const struct blkin_span *span)
{
    return span->state_ != 0;
}

/*
 * What to send along with a request so that the receiver's spans become children of this one; see
 * the writers of blkin_context.h. Valid as long as the span, also after its end, and also when it
 * is not recorded: then it is the context that the span itself was given, or one without ids.
 */
static inline const struct blkin_context *blkin_span_context(const struct blkin_span *span)
{
    static const struct blkin_context none = {0, 0, 0, 0, 0, 0, 0};

    return span->has_context_ ? &span->context : &none;
}

/* An event within the span, at this moment, of severity BLKIN_INFO. */
static inline void blkin_span_annotate(struct blkin_span *span, const char *text)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_annotate_(span, BLKIN_INFO, text, blkin_length_(text));
}

/* The same with a severity. */
static inline void blkin_span_log(struct blkin_span *span, enum blkin_severity severity,
                                  const char *text)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_annotate_(span, severity, text, blkin_length_(text));
}

/* The same at a time of the caller's, in ns of CLOCK_MONOTONIC. */
static inline void blkin_span_log_at(struct blkin_span *span, enum blkin_severity severity,
                                     const char *text, uint64_t time_ns)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_annotate_at_(span, severity, text, blkin_length_(text), time_ns);
}

/* Tags: what describes the request, as keys and values. */
static inline void blkin_span_tag_string(struct blkin_span *span, const char *key,
                                         const char *value)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_tag_string_(span, key, blkin_length_(key), value, blkin_length_(value));
}

static inline void blkin_span_tag_int64(struct blkin_span *span, const char *key, int64_t value)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_tag_number_(span, 'i', key, blkin_length_(key), (uint64_t)value);
}

static inline void blkin_span_tag_uint64(struct blkin_span *span, const char *key, uint64_t value)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_tag_number_(span, 'u', key, blkin_length_(key), value);
}

static inline void blkin_span_tag_double(struct blkin_span *span, const char *key, double value)
{
    if (BLKIN_UNLIKELY_(span->state_)) {
        union {
            double value;
            uint64_t bits;
        } both;

        both.value = value;
        blkin_tag_number_(span, 'd', key, blkin_length_(key), both.bits);
    }
}

static inline void blkin_span_tag_bool(struct blkin_span *span, const char *key, int value)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_tag_number_(span, 'b', key, blkin_length_(key), value != 0);
}

/* The request failed: Zipkin shows the span in red. message is such as strerror() gives. */
static inline void blkin_span_error(struct blkin_span *span, const char *message)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_tag_string_(span, "error", 5, message, blkin_length_(message));
}

/* The other side of a client or server span; any of its members may be NULL or 0. */
static inline void blkin_span_set_remote(struct blkin_span *span,
                                         const struct blkin_endpoint *remote)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_set_remote_(span, remote);
}

/* Another service than the process's. Borrowed until the end. */
static inline void blkin_span_set_service(struct blkin_span *span,
                                          const struct blkin_endpoint *service)
{
    if (BLKIN_UNLIKELY_(span->state_))
        span->service_ = service;
}

/* The span began at another time than its begin call: while the request waited in a queue. */
static inline void blkin_span_set_start(struct blkin_span *span, uint64_t time_ns)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_set_start_(span, time_ns);
}

/* Ends the span and records it. A second end does nothing. */
static inline void blkin_span_end(struct blkin_span *span)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_end_(span);
}

/* The same for a span that ended at time_ns, before now. */
static inline void blkin_span_end_at(struct blkin_span *span, uint64_t time_ns)
{
    if (BLKIN_UNLIKELY_(span->state_))
        blkin_span_end_at_(span, time_ns);
}

/* ---- the current span of a thread, for layers that cannot pass one on --------------------------
 */

/* Returns the calling thread's current span, or NULL. Async-signal-safe. */
BLKIN_PUBLIC struct blkin_span *blkin_current(void);

/*
 * Makes span (or NULL) the current one and returns the one before, to be put back later: the span
 * must not end its life while it is current. Async-signal-safe.
 */
BLKIN_PUBLIC struct blkin_span *blkin_set_current(struct blkin_span *span);

#else /* BLKIN_DISABLE */

static inline void blkin_set_service(const struct blkin_endpoint *service)
{
    (void)service;
}

static inline void blkin_set_version(const char *version)
{
    (void)version;
}

static inline void blkin_heartbeat(void)
{
}

static inline int blkin_is_on(void)
{
    return 0;
}

static inline int blkin_set_sampling(const char *policy)
{
    (void)policy;
    return 0;
}

/* The context of another process is passed on, as by a process that is not traced. */
static inline void blkin_span_begin_remote(struct blkin_span *span, const char *name,
                                           enum blkin_kind kind,
                                           const struct blkin_context *context)
{
    (void)name;
    (void)kind;
    span->state_ = 0;
    span->has_context_ = context != 0;
    if (context)
        span->context = *context;
}

static inline void blkin_span_begin(struct blkin_span *span, const char *name, enum blkin_kind kind,
                                    const struct blkin_span *parent)
{
    blkin_span_begin_remote(span, name, kind,
                            parent && parent->has_context_ ? &parent->context : 0);
}

static inline int blkin_span_is_recorded(const struct blkin_span *span)
{
    (void)span;
    return 0;
}

static inline const struct blkin_context *blkin_span_context(const struct blkin_span *span)
{
    static const struct blkin_context none = {0, 0, 0, 0, 0, 0, 0};

    return span->has_context_ ? &span->context : &none;
}

static inline void blkin_span_annotate(struct blkin_span *span, const char *text)
{
    (void)span;
    (void)text;
}

static inline void blkin_span_log(struct blkin_span *span, enum blkin_severity severity,
                                  const char *text)
{
    (void)span;
    (void)severity;
    (void)text;
}

static inline void blkin_span_log_at(struct blkin_span *span, enum blkin_severity severity,
                                     const char *text, uint64_t time_ns)
{
    (void)span;
    (void)severity;
    (void)text;
    (void)time_ns;
}

static inline void blkin_span_tag_string(struct blkin_span *span, const char *key,
                                         const char *value)
{
    (void)span;
    (void)key;
    (void)value;
}

static inline void blkin_span_tag_int64(struct blkin_span *span, const char *key, int64_t value)
{
    (void)span;
    (void)key;
    (void)value;
}

static inline void blkin_span_tag_uint64(struct blkin_span *span, const char *key, uint64_t value)
{
    (void)span;
    (void)key;
    (void)value;
}

static inline void blkin_span_tag_double(struct blkin_span *span, const char *key, double value)
{
    (void)span;
    (void)key;
    (void)value;
}

static inline void blkin_span_tag_bool(struct blkin_span *span, const char *key, int value)
{
    (void)span;
    (void)key;
    (void)value;
}

static inline void blkin_span_error(struct blkin_span *span, const char *message)
{
    (void)span;
    (void)message;
}

static inline void blkin_span_set_remote(struct blkin_span *span,
                                         const struct blkin_endpoint *remote)
{
    (void)span;
    (void)remote;
}

static inline void blkin_span_set_service(struct blkin_span *span,
                                          const struct blkin_endpoint *service)
{
    (void)span;
    (void)service;
}

static inline void blkin_span_set_start(struct blkin_span *span, uint64_t time_ns)
{
    (void)span;
    (void)time_ns;
}

static inline void blkin_span_end(struct blkin_span *span)
{
    (void)span;
}

static inline void blkin_span_end_at(struct blkin_span *span, uint64_t time_ns)
{
    (void)span;
    (void)time_ns;
}

static inline struct blkin_span *blkin_current(void)
{
    return 0;
}

static inline struct blkin_span *blkin_set_current(struct blkin_span *span)
{
    (void)span;
    return 0;
}

#endif /* BLKIN_DISABLE */

/* ---- macros -----------------------------------------------------------------------------------
 *
 * The functions above evaluate their arguments always, these only if the span is recorded: what is
 * costly to prepare costs nothing while nobody looks.
 *
 *     BLKIN_TAG_STRING(&span, "object", object_name(request));
 *
 * span is evaluated once and may be NULL, so that BLKIN_ANNOTATE(blkin_current(), "...") is right
 * everywhere. Each is an expression of type void, for any place in a function where a call may
 * stand (a statement expression of GNU C, marked so that -Wpedantic accepts it). -DBLKIN_DISABLE
 * checks the types of the arguments, evaluates none and leaves no code.
 */

#ifndef BLKIN_DISABLE
#define BLKIN_IF_RECORDED_(span, call)                                                   \
    __extension__({                                                                      \
        struct blkin_span *const blkin_recorded_ = (span);                               \
        if (blkin_recorded_ && BLKIN_UNLIKELY_(blkin_span_is_recorded(blkin_recorded_))) \
            call;                                                                        \
        (void)0;                                                                         \
    })
#else
#define BLKIN_IF_RECORDED_(span, call)                     \
    (1 ? (void)0 : __extension__({                         \
        struct blkin_span *const blkin_recorded_ = (span); \
        call;                                              \
    }))
#endif

/* blkin_span_annotate(): an event within the span, now. */
#define BLKIN_ANNOTATE(span, text) \
    BLKIN_IF_RECORDED_(span, blkin_span_annotate(blkin_recorded_, (text)))

/* blkin_span_log(): the same with a severity, such as BLKIN_WARNING. */
#define BLKIN_LOG(span, severity, text) \
    BLKIN_IF_RECORDED_(span, blkin_span_log(blkin_recorded_, (severity), (text)))

/* blkin_span_tag_*(): key and value. */
#define BLKIN_TAG_STRING(span, key, value) \
    BLKIN_IF_RECORDED_(span, blkin_span_tag_string(blkin_recorded_, (key), (value)))
#define BLKIN_TAG_INT64(span, key, value) \
    BLKIN_IF_RECORDED_(span, blkin_span_tag_int64(blkin_recorded_, (key), (value)))
#define BLKIN_TAG_UINT64(span, key, value) \
    BLKIN_IF_RECORDED_(span, blkin_span_tag_uint64(blkin_recorded_, (key), (value)))
#define BLKIN_TAG_DOUBLE(span, key, value) \
    BLKIN_IF_RECORDED_(span, blkin_span_tag_double(blkin_recorded_, (key), (value)))
#define BLKIN_TAG_BOOL(span, key, value) \
    BLKIN_IF_RECORDED_(span, blkin_span_tag_bool(blkin_recorded_, (key), (value)))

/* blkin_span_error(): the request failed. */
#define BLKIN_ERROR(span, message) \
    BLKIN_IF_RECORDED_(span, blkin_span_error(blkin_recorded_, (message)))

/* blkin_span_set_remote(): the other side. */
#define BLKIN_SET_REMOTE(span, endpoint) \
    BLKIN_IF_RECORDED_(span, blkin_span_set_remote(blkin_recorded_, (endpoint)))

/*
 * The frame, to go with them. BLKIN_BEGIN*() evaluate all arguments, once: they decide whether the
 * span is recorded. parent or context may be NULL, span not.
 */
#define BLKIN_BEGIN(span, name, kind, parent) blkin_span_begin((span), (name), (kind), (parent))
#define BLKIN_BEGIN_REMOTE(span, name, kind, context) \
    blkin_span_begin_remote((span), (name), (kind), (context))
#define BLKIN_END(span) BLKIN_IF_RECORDED_(span, blkin_span_end(blkin_recorded_))

/*
 * A span for the rest of the block, whatever way leaves it:
 *
 *     BLKIN_SCOPE(span, "flush", BLKIN_INTERNAL, parent);
 *     blkin_span_tag_int64(&span, "bytes", bytes);
 */
static inline void blkin_scope_end_(struct blkin_span *span)
{
    blkin_span_end(span);
}

#define BLKIN_SCOPE(span, name, kind, parent)                          \
    __attribute__((cleanup(blkin_scope_end_))) struct blkin_span span; \
    blkin_span_begin(&(span), (name), (kind), (parent))

#ifdef __cplusplus
}
#endif

#endif /* BLKIN_H */
