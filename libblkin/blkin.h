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
 * Parents. To be the parent of another span is no use of it in this sense: from its begin on, any
 * number of threads may begin children below one span, and ask for its context, at any time, also
 * while its owner annotates or ends it, and after its end, until its struct is begun anew,
 * dropped or freed.
 *
 * Steps. What a request does one after the other on its thread, look up, read, check, reply, need
 * not be spans: a step begins and ends inside of its span, and is two records of the span's event
 * instead of an event of its own, a fifth of the cost. Readers see a child as any other. Take a
 * step for what begins and ends in the code that has the span at hand, nested like brackets; take a
 * span for what another thread goes on with, what overlaps with its siblings, what may outlive its
 * parent, and what the other side's answer ends.
 *
 * Recording. A span is recorded if, when it begins, an LTTng session has the event "blkin:span"
 * enabled, and its trace is sampled; in streaming events, as they happen, too, if "blkin:begin" is
 * enabled (as by "blkin:*"). Every other call on a span that is not recorded costs one test of a
 * byte. What a recorded span takes beyond BLKIN_SPAN_LOG bytes of annotations, tags and links is
 * dropped and counted in the span.
 *
 * Texts are copied. NULL is taken as "". Any bytes are allowed, UTF-8 is expected: what is too long
 * is cut between two characters. Where a text comes with its length it need not end with a NUL; it
 * ends at its first one all the same.
 *
 * Times are in ns of CLOCK_MONOTONIC.
 *
 * Threads and signals. Every function may be called from any thread, and all but those of "the
 * process", "sampling", "usage" and "slow requests", and those that format, from a signal handler,
 * on spans of the handler's own: it must not touch one that the code under it may be using. Not so
 * for the first span of a process, which loads the provider: call blkin_init() before; nor for that
 * of a thread: call blkin_init_thread(). See doc/library.md.
 *
 * Nothing fails: functions return nothing, and errno is left alone.
 *
 * ABI. A program that is compiled against version 1.x of this header runs with libblkin.so.1 of
 * that and every later version. What the compiler takes out of the header stays as it is: the
 * values of macros and enumerations; struct blkin_endpoint, struct blkin_context, and of struct
 * blkin_span its size, its alignment and the first three members; what *blkin_gate_ means; the
 * exported functions and their arguments. What is in blkin_span.inside_, and what is recorded how,
 * is the library's alone and may change; some of it is not in use yet.
 *
 * -DBLKIN_DISABLE makes every function here an empty inline one, and needs no library. Files of one
 * program may differ in it, and pass spans to each other: what one begins that has it is not
 * recorded, and its context is passed on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_H
#define BLKIN_H

#include "blkin_base.h"
#include "blkin_context.h"

#include <stdarg.h>
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

#define BLKIN_SPAN_SIZE     640 /* bytes of a struct blkin_span */
#define BLKIN_SPAN_SIZE_MIN 192 /* of the least room that a span can be begun in */
#define BLKIN_SPAN_LOG      384 /* of these, bytes of annotations, tags, links and steps */

/* The members that end in _ are the library's own. */
struct blkin_span {
    struct blkin_context context; /* to be read by blkin_span_context() */
    uint8_t state_;               /* 0: not recorded */
    uint8_t has_context_;         /* 0: context has never been set */
    uint16_t inside_[7];          /* this and what follows: written only while it is recorded */
    uint64_t room_[(BLKIN_SPAN_SIZE - 64) / 8];
} __attribute__((may_alias));

/*
 * Room for a span of another size, of 192 to 2048 bytes: a member of a request, say, of which there
 * are many.
 *
 *     struct request {
 *         BLKIN_SPAN_ROOM(256) trace;
 *     };
 *
 * A span without annotations and tags takes 134 bytes, its name and that of its service. Each
 * annotation takes 11 bytes and its text, a tag 14 bytes and its key, or 5 bytes, key and text. A
 * step takes 20 bytes and its name, and 4 more while it is open. A service of the span's own takes
 * up to 132 bytes, usage 64.
 */
#define BLKIN_SPAN_ROOM(size)                                                           \
    struct {                                                                            \
        uint64_t bytes_[(size) / sizeof(char[(size) >= BLKIN_SPAN_SIZE_MIN ? 8 : -1])]; \
    }

/* ---- the process ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The version of the library that is in use, as BLKIN_VERSION is that of the header. */
BLKIN_API_ unsigned blkin_version(void) BLKIN_ELSE_(BLKIN_VERSION);

/*
 * The service of all spans that do not say otherwise: its name, address and listening port.
 * Borrowed for as long as the process runs; NULL brings back the default, the program's name.
 * Any thread, but meant for the start of main(), beside blkin_init() of blkin_base.h.
 */
BLKIN_API_ void blkin_set_service(const struct blkin_endpoint *service) BLKIN_ELSE_();

/*
 * A version to show in process events, such as "ceph-osd 19.2.0". Borrowed likewise.
 */
BLKIN_API_ void blkin_set_version(const char *version) BLKIN_ELSE_();

/*
 * Emits the event "blkin:process" if it is due: service, pid, version, wall clock and sampling.
 * Recorded spans do this by themselves once a second; a daemon that may be idle for long calls it
 * from a timer it has anyway, so that readers see time go on. Costs a few ns when not due.
 */
BLKIN_API_ void blkin_heartbeat(void) BLKIN_ELSE_();

/* ---- sampling ---- */

/*
 * Sets how the traces that this process starts are sampled: "always", "never", "ratio=0.01",
 * "rate=100" (traces per second), each optionally followed by rules for names of root spans, as
 * in "ratio=0.01,scrub:never,recover*:always", by the least severity that annotations are recorded
 * with in one event per span, as in "always,severity=notice", and by a level of blkin_set_usage(),
 * which goes before the one that is set there, as in "always,usage=2". A trace that comes with a
 * decision keeps it, and a debug flag means "always". The environment variable BLKIN_SAMPLING sets
 * the same at start, and a sampling file changes it from outside at any time: see doc/library.md.
 * Returns 0, or -EINVAL, and nothing changed, for another text.
 */
BLKIN_API_ int blkin_set_sampling(const char *policy) BLKIN_ELSE_(0);

/* ---- usage ---- */

/*
 * Sets what is measured of a span's thread while it works for the span, and recorded as tags of it:
 * 0, the default: nothing; 1: its time on a CPU and off it, usage.cpu_us and usage.off_cpu_us; 2:
 * usage.switches, usage.preemptions, usage.faults, usage.major_faults and usage.dirtied_pages, too;
 * 3: also usage.run_delay_us, the part of the time off the CPU in which it waited for one. A thread
 * works for its current span; for one that never was the current one, from its begin to its end, if
 * both are on one thread that did not turn to another request in between. Children that have tags
 * of their own are left out. A span of which that is not known has no such tags. See
 * doc/library.md. Counts for spans that begin from now on. Returns 0, or -EINVAL for another level.
 */
BLKIN_API_ int blkin_set_usage(int level) BLKIN_ELSE_(0);

/* ---- slow requests ---- */

/*
 * Sets which spans raise an alarm, the event "blkin:slow" at their end, by which "blkin record"
 * fetches their whole trace: those that take longer than the first rule says whose globs fit their
 * service and name, and those that failed, as in "osd*:write>20ms, *>100ms, error, max=50/s". max
 * is the alarms of this process per second; what that holds back is counted. "" is no rule. The
 * environment variable BLKIN_SLOW sets the same at start, and a file changes it from outside at any
 * time: see doc/library.md. Returns 0, or -EINVAL, and nothing changed, for another text.
 */
BLKIN_API_ int blkin_set_slow(const char *rules) BLKIN_ELSE_(0);

/* ---- is anybody looking? ---- */

#ifndef BLKIN_DISABLE

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

#else /* BLKIN_DISABLE */

static inline int blkin_is_on(void)
{
    return 0;
}

#endif /* BLKIN_DISABLE */

/* ---- the current span of a thread, for layers that cannot pass one on ---- */

/* Returns the calling thread's current span, or NULL. Async-signal-safe. */
BLKIN_API_ struct blkin_span *blkin_current(void) BLKIN_ELSE_(NULL);

/*
 * Makes span (or NULL) the current one and returns the one before, to be put back later: the span
 * must not end its life while it is current. Async-signal-safe. BLKIN_CURRENT_SCOPE() does both.
 */
BLKIN_API_ struct blkin_span *blkin_set_current(struct blkin_span *span) BLKIN_ELSE_(NULL);

#pragma GCC diagnostic pop

/* ---- implementation of the inline part: not for use ---- */

/* Called by its address, without the detour of a PLT. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define BLKIN_CALL_ BLKIN_PUBLIC __attribute__((noplt))
#endif
#endif
#ifndef BLKIN_CALL_
#define BLKIN_CALL_ BLKIN_PUBLIC
#endif

/* One for each operation, on a span that is recorded (begin: that may be). */
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
BLKIN_CALL_ void blkin_span_set_remote_(struct blkin_span *span,
                                        const struct blkin_endpoint *remote);
BLKIN_CALL_ void blkin_span_set_service_(struct blkin_span *span,
                                         const struct blkin_endpoint *service);
BLKIN_CALL_ void blkin_span_set_start_(struct blkin_span *span, uint64_t time_ns);
BLKIN_CALL_ void blkin_span_keep_(struct blkin_span *span, const char *why, size_t length);
BLKIN_CALL_ void blkin_span_end_(struct blkin_span *span);
BLKIN_CALL_ void blkin_span_end_at_(struct blkin_span *span, uint64_t time_ns);
BLKIN_CALL_ void blkin_span_drop_(struct blkin_span *span);
BLKIN_CALL_ void blkin_step_begin_(struct blkin_span *span, const char *name, size_t name_length,
                                   uint32_t kind);
BLKIN_CALL_ void blkin_step_end_(struct blkin_span *span);
BLKIN_CALL_ void blkin_step_context_(const struct blkin_span *span, struct blkin_context *context);

/* A constant for a literal. */
static inline size_t blkin_length_(const char *text)
{
    return text ? __builtin_strlen(text) : 0;
}

/* Of a text of at most length bytes. */
static inline size_t blkin_length_within_(const char *text, size_t length)
{
    const char *end = text ? (const char *)__builtin_memchr(text, 0, length) : text;

    return end || !text ? (size_t)(end - text) : length;
}

static inline int blkin_has_trace_(const struct blkin_context *context)
{
    return (context->trace_id | context->trace_id_high) != 0;
}

/* Is it decided that this trace is not recorded? */
static inline int blkin_is_refused_(const struct blkin_context *context)
{
    return (context->flags & (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED |
                              BLKIN_CONTEXT_DEBUG)) == BLKIN_CONTEXT_DECIDED;
}

/*
 * What all of it asks: is the span recorded; may a span be recorded below this context (or none);
 * and below this span, which another thread may be ending meanwhile?
 */
#ifndef BLKIN_DISABLE
#define BLKIN_IS_RECORDED_(span) __builtin_expect((span)->state_ != 0, 0)
#define BLKIN_IS_WANTED_(context) \
    (blkin_is_on() && !((context) && blkin_has_trace_(context) && blkin_is_refused_(context)))
#define BLKIN_IS_PARENT_(span)                                                       \
    (__builtin_expect(__atomic_load_n(&(span)->state_, __ATOMIC_RELAXED) != 0, 0) || \
     ((span)->has_context_ && !blkin_is_refused_(&(span)->context) && blkin_is_on()))
#else
#define BLKIN_IS_RECORDED_(span)  0
#define BLKIN_IS_WANTED_(context) 0
#define BLKIN_IS_PARENT_(span)    0
#endif

/* A span that is not recorded passes on what it was given: the next process may be traced. */
static inline void blkin_pass_on_(struct blkin_span *span, const struct blkin_context *context)
{
    if (context)
        span->context = *context;
    span->has_context_ = context != NULL;
    span->state_ = 0;
}

/* ---- begin ---- */

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
    else if (BLKIN_IS_PARENT_(parent))
        blkin_span_begin_child_(span, size, name, length, kind, parent);
    else
        blkin_pass_on_(span, parent->has_context_ ? &parent->context : NULL);
}

/*
 * Begins a span below a context that came from another process (see blkin_context.h), or below none
 * (NULL, or a context without ids): then it is the root of a new trace, if that is sampled. The
 * context's strings must live as long as the span.
 */
static inline void blkin_span_begin_remote(struct blkin_span *span, const char *name,
                                           enum blkin_kind kind,
                                           const struct blkin_context *context)
{
    blkin_begin_remote_(span, sizeof(*span), name, blkin_length_(name), kind, context);
}

static inline void blkin_span_begin_remote_n(struct blkin_span *span, const char *name,
                                             size_t length, enum blkin_kind kind,
                                             const struct blkin_context *context)
{
    blkin_begin_remote_(span, sizeof(*span), name, blkin_length_within_(name, length), kind,
                        context);
}

/*
 * Begins a span below another one of this process, or a new trace if parent is NULL. The parent may
 * have ended: what is written back, or a late replica. If the trace is sampled the child is
 * recorded; not so below a root that began while nobody looked, as its trace has no ids.
 */
static inline void blkin_span_begin(struct blkin_span *span, const char *name, enum blkin_kind kind,
                                    const struct blkin_span *parent)
{
    blkin_begin_(span, sizeof(*span), name, blkin_length_(name), kind, parent);
}

static inline void blkin_span_begin_n(struct blkin_span *span, const char *name, size_t length,
                                      enum blkin_kind kind, const struct blkin_span *parent)
{
    blkin_begin_(span, sizeof(*span), name, blkin_length_within_(name, length), kind, parent);
}

/*
 * The span in a room, for all other calls: room is at least BLKIN_SPAN_SIZE_MIN bytes of the
 * caller, at an address that 8 divides.
 */
static inline struct blkin_span *blkin_span_in(void *room)
{
    struct blkin_span *span = (struct blkin_span *)room;

    __asm__("" : "+r"(span)); /* for the compiler it is of any size */
    return span;
}

/* The same as blkin_span_begin(), in a room of so many bytes. Returns the span. */
static inline struct blkin_span *blkin_span_begin_in(void *room, size_t size, const char *name,
                                                     enum blkin_kind kind,
                                                     const struct blkin_span *parent)
{
    struct blkin_span *span = blkin_span_in(room);

    blkin_begin_(span, size & ~(size_t)7, name, blkin_length_(name), kind, parent);
    return span;
}

/* The same as blkin_span_begin_remote(), in a room of so many bytes. Returns the span. */
static inline struct blkin_span *blkin_span_begin_remote_in(void *room, size_t size,
                                                            const char *name, enum blkin_kind kind,
                                                            const struct blkin_context *context)
{
    struct blkin_span *span = blkin_span_in(room);

    blkin_begin_remote_(span, size & ~(size_t)7, name, blkin_length_(name), kind, context);
    return span;
}

/* True if what is recorded on the span is seen by somebody: to skip costly preparations. */
static inline int blkin_span_is_recorded(const struct blkin_span *span)
{
    (void)span;
    return BLKIN_IS_RECORDED_(span) ? 1 : 0;
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

/* ---- annotations ---- */

/* An event within the span, at this moment, of severity BLKIN_INFO. */
static inline void blkin_span_annotate(struct blkin_span *span, const char *text)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_annotate_(span, BLKIN_INFO, text, blkin_length_(text));
}

static inline void blkin_span_annotate_n(struct blkin_span *span, const char *text, size_t length)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_annotate_(span, BLKIN_INFO, text, blkin_length_within_(text, length));
}

/* The same with a severity. */
static inline void blkin_span_log(struct blkin_span *span, enum blkin_severity severity,
                                  const char *text)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_annotate_(span, severity, text, blkin_length_(text));
}

static inline void blkin_span_log_n(struct blkin_span *span, enum blkin_severity severity,
                                    const char *text, size_t length)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_annotate_(span, severity, text, blkin_length_within_(text, length));
}

/* The same at a time of the caller's, in ns of CLOCK_MONOTONIC. */
static inline void blkin_span_log_at(struct blkin_span *span, enum blkin_severity severity,
                                     const char *text, uint64_t time_ns)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_annotate_at_(span, severity, text, blkin_length_(text), time_ns);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/*
 * An annotation of severity BLKIN_INFO whose text printf(3) makes, if the span is recorded; what is
 * beyond 240 bytes is cut. The arguments are evaluated always: BLKIN_ANNOTATEF() does not. Not
 * async-signal-safe, as printf(3) is not.
 */
BLKIN_API_ __attribute__((format(printf, 2, 3))) void blkin_span_annotatef(struct blkin_span *span,
                                                                           const char *format, ...)
    BLKIN_ELSE_();

BLKIN_API_ __attribute__((format(printf, 2, 0))) void
blkin_span_vannotatef(struct blkin_span *span, const char *format, va_list arguments) BLKIN_ELSE_();

#pragma GCC diagnostic pop

/* ---- tags and links ---- */

/* Tags: what describes the request, as keys and values. */
static inline void blkin_span_tag_string(struct blkin_span *span, const char *key,
                                         const char *value)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_string_(span, key, blkin_length_(key), value, blkin_length_(value));
}

static inline void blkin_span_tag_string_n(struct blkin_span *span, const char *key,
                                           const char *value, size_t length)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_string_(span, key, blkin_length_(key), value,
                               blkin_length_within_(value, length));
}

static inline void blkin_span_tag_int64(struct blkin_span *span, const char *key, int64_t value)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_int64_(span, key, blkin_length_(key), value);
}

static inline void blkin_span_tag_uint64(struct blkin_span *span, const char *key, uint64_t value)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_uint64_(span, key, blkin_length_(key), value);
}

static inline void blkin_span_tag_double(struct blkin_span *span, const char *key, double value)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_double_(span, key, blkin_length_(key), value);
}

static inline void blkin_span_tag_bool(struct blkin_span *span, const char *key, int value)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_tag_bool_(span, key, blkin_length_(key), value != 0);
}

/* The request failed: Zipkin shows the span in red. message is such as strerror() gives. */
static inline void blkin_span_error(struct blkin_span *span, const char *message)
{
    blkin_span_tag_string(span, "error", message);
}

static inline void blkin_span_error_n(struct blkin_span *span, const char *message, size_t length)
{
    blkin_span_tag_string_n(span, "error", message, length);
}

/*
 * Another span that this one has to do with and that is not its parent: of each request, say, that
 * one commit of the journal serves. Of the context, only the ids are copied; one without ids is no
 * link. A span has room for ten, if nothing else is in it.
 */
static inline void blkin_span_link(struct blkin_span *span, const struct blkin_context *context)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_link_(span, context);
}

/*
 * This trace is worth to be kept whole, whatever its spans took: the span's end raises an alarm as
 * a slow one's does, see blkin_set_slow(), and says why. The first call counts.
 */
static inline void blkin_span_keep(struct blkin_span *span, const char *why)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_keep_(span, why, blkin_length_(why));
}

static inline void blkin_span_keep_n(struct blkin_span *span, const char *why, size_t length)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_keep_(span, why, blkin_length_within_(why, length));
}

/* ---- what the beginning did not know ---- */

/* Another name: that of the operation, once the request is decoded. */
static inline void blkin_span_set_name(struct blkin_span *span, const char *name)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_set_name_(span, name, blkin_length_(name));
}

static inline void blkin_span_set_name_n(struct blkin_span *span, const char *name, size_t length)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_set_name_(span, name, blkin_length_within_(name, length));
}

/* The other side of a client or server span; any of its members may be NULL or 0. Copied. */
static inline void blkin_span_set_remote(struct blkin_span *span,
                                         const struct blkin_endpoint *remote)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_set_remote_(span, remote);
}

/* Another service than the process's; NULL: that one again. Copied. */
static inline void blkin_span_set_service(struct blkin_span *span,
                                          const struct blkin_endpoint *service)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_set_service_(span, service);
}

/*
 * The span began at another time than its begin call: while the request waited in a queue, say.
 * Annotations stay where they are in time.
 */
static inline void blkin_span_set_start(struct blkin_span *span, uint64_t time_ns)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_set_start_(span, time_ns);
}

/* ---- end ---- */

/* Ends the span and records it. A second end does nothing. */
static inline void blkin_span_end(struct blkin_span *span)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_end_(span);
}

/* The same for a span that ended at time_ns, before now. */
static inline void blkin_span_end_at(struct blkin_span *span, uint64_t time_ns)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_end_at_(span, time_ns);
}

/*
 * The span has turned out to be of no interest: it is not recorded, nor is what begins below it
 * from now on, here or in a process that gets its context now. Children that have begun before are
 * recorded, below a parent that is missing; so drop early. What was streamed of it is out: a
 * streamed span just ends. No other thread may begin a child of it meanwhile.
 */
static inline void blkin_span_drop(struct blkin_span *span)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_span_drop_(span);
}

/* ---- steps ---- */

/*
 * Begins a step of the span: a child of it, or of the step of it that is open. Until its end, what
 * is said of the span, annotations, tags, errors, links, the remote endpoint, is said of the step;
 * name, service and start are always the span's. A name beyond 100 bytes is cut.
 *
 * A call on the span as any other: by one thread at a time. Each begin needs its end, in the order
 * of brackets; what is still open when the span ends, ends with it and is tagged
 * "blkin.incomplete". Twelve may be open at once, and a span may have a million: what is beyond is
 * dropped, with all that is said of it, and counted.
 *
 * Where the span's BLKIN_SPAN_LOG bytes are full, a step is recorded as an event of its own at its
 * end, with some 120 bytes for its name and all that is in it; 70 if the span's usage is measured.
 */
static inline void blkin_step_begin(struct blkin_span *span, const char *name, enum blkin_kind kind)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_step_begin_(span, name, blkin_length_(name), kind);
}

static inline void blkin_step_begin_n(struct blkin_span *span, const char *name, size_t length,
                                      enum blkin_kind kind)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_step_begin_(span, name, blkin_length_within_(name, length), kind);
}

/* Ends the step that was begun last and is open; without one, it does nothing. */
static inline void blkin_step_end(struct blkin_span *span)
{
    if (BLKIN_IS_RECORDED_(span))
        blkin_step_end_(span);
}

/*
 * Sets *context to that of the innermost open step, or of the span if none is: what a client's step
 * sends along so that the receiver's spans become its children. Here,
 * blkin_span_begin_remote(&child, name, kind, context) begins a span below the step. A call on the
 * span as any other, unlike blkin_span_context(), which is the span's own context always.
 */
static inline void blkin_step_context(const struct blkin_span *span, struct blkin_context *context)
{
    *context = *blkin_span_context(span);
    if (BLKIN_IS_RECORDED_(span))
        blkin_step_context_(span, context);
}

/* ---- macros ---- */

/*
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
#define BLKIN_IF_RECORDED_(span, call)                              \
    __extension__({                                                 \
        struct blkin_span *const blkin_recorded_ = (span);          \
        if (blkin_recorded_ && BLKIN_IS_RECORDED_(blkin_recorded_)) \
            call;                                                   \
        (void)0;                                                    \
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

/* blkin_span_annotatef(): the same, of a format and its arguments as of printf(3). */
#define BLKIN_ANNOTATEF(span, ...) \
    BLKIN_IF_RECORDED_(span, blkin_span_annotatef(blkin_recorded_, __VA_ARGS__))

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

/* blkin_span_link(): another span that this one has to do with. */
#define BLKIN_LINK(span, context) \
    BLKIN_IF_RECORDED_(span, blkin_span_link(blkin_recorded_, (context)))

/* blkin_span_keep(): the trace is worth to be kept whole. */
#define BLKIN_KEEP(span, why) BLKIN_IF_RECORDED_(span, blkin_span_keep(blkin_recorded_, (why)))

/* blkin_span_set_name(): what the request has turned out to be. */
#define BLKIN_SET_NAME(span, name) \
    BLKIN_IF_RECORDED_(span, blkin_span_set_name(blkin_recorded_, (name)))

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

/* blkin_step_begin(), blkin_step_end(): a step of the span. */
#define BLKIN_STEP_BEGIN(span, name, kind) \
    BLKIN_IF_RECORDED_(span, blkin_step_begin(blkin_recorded_, (name), (kind)))
#define BLKIN_STEP_END(span) BLKIN_IF_RECORDED_(span, blkin_step_end(blkin_recorded_))

static inline void blkin_end_of_scope_(struct blkin_span *span)
{
    blkin_span_end(span);
}

/*
 * A span for the rest of the block, whatever way leaves it:
 *
 *     BLKIN_SCOPE(span, "flush", BLKIN_INTERNAL, parent);
 *     blkin_span_tag_int64(&span, "bytes", bytes);
 */
#define BLKIN_SCOPE(span, name, kind, parent)                             \
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

/*
 * A step of the span for the rest of the block, whatever way leaves it. span may be NULL; it must
 * outlive the block.
 *
 *     BLKIN_STEP_SCOPE(&span, "look up", BLKIN_INTERNAL);
 */
#define BLKIN_STEP_SCOPE(span, name, kind)                                                     \
    __attribute__((cleanup(blkin_step_end_of_scope_), unused)) struct blkin_span *BLKIN_STEP_( \
        __LINE__) = blkin_step_begun_((span), (name), (kind))

static inline void blkin_put_back_(struct blkin_span **before)
{
    (void)blkin_set_current(*before);
}

/*
 * Makes a span (or NULL) the current one for the rest of the block, whatever way leaves it, and
 * puts back the one before. The span must outlive the block.
 *
 *     BLKIN_CURRENT_SCOPE(&span);
 *     backend->write(request); // where: blkin_span_begin(&io, "pwrite", kind, blkin_current())
 */
#define BLKIN_CURRENT_SCOPE(span)                                                                  \
    __attribute__((cleanup(blkin_put_back_), unused)) struct blkin_span *BLKIN_BEFORE_(__LINE__) = \
        blkin_set_current(span)

#ifdef __cplusplus
}
#endif

#endif /* BLKIN_H */
