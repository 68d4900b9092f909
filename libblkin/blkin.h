/*
 * BlkKin's span API: where a request spends its time, at the cost of one event per span.
 *
 *     int serve_write(const struct blkin_context *received, uint64_t offset)
 *     {
 *         struct blkin_span span;
 *         int error;
 *
 *         blkin_span_begin_remote(&span, "write", BLKIN_SERVER, received);
 *         blkin_span_tag_uint64(&span, "offset", offset);
 *         error = store(offset);
 *         if (error)
 *             blkin_span_error(&span, strerror(error));
 *         blkin_span_end(&span);
 *         return error;
 *     }
 *
 * A span is memory of the caller, on the stack or inside a request. The functions allocate nothing,
 * take no lock and send nothing, except for first spans (see "Threads and signals"). No call has to
 * release a span: a span that never ends is never recorded. One thread may begin a span and another
 * thread may end it, but two threads must not use one span at the same time. Do not copy a span:
 * use its address.
 *
 * Parents. Threads need no lock to begin children below a span, or to read the context of the span.
 * Both are allowed from the parent's begin until the program reuses the parent's memory. The parent
 * may have ended.
 *
 * Steps. A step is a child that begins and ends inside its span, on one thread, nested like
 * brackets. A step is two records in its span's event, and costs a fraction of a span. Use a span
 * for work that another thread continues, that overlaps with its siblings, or that outlives its
 * parent.
 *
 * Recording. A span is recorded if its trace is sampled and if, at its begin, an agent runs or an
 * LTTng session has "blkin:span" enabled. On a span that is not recorded, every call after the
 * begin tests one byte. Records that do not fit into a span are dropped, and counted in it.
 *
 * Texts. The functions copy each text, which ends with a NUL and is UTF-8; NULL means "". Two texts
 * are borrowed: that of blkin_set_version(), and the tracestate of a context. A long text is cut
 * between two characters. The name of a span has at most 120 bytes, or fewer in a small span. The
 * name of a step has at most 100 bytes, the name of a service 72, an address 46, a key 100. A value
 * or an annotation has at most 240 bytes. The functions whose names end in _n take data without a
 * NUL: they stop at `length`, or at a NUL.
 *
 * Times are in ns of the span clock, which is CLOCK_MONOTONIC: see blkin_now(). In annotations and
 * ends, a time in the future counts as now. blkin_span_set_start() ignores such a time.
 *
 * Threads and signals. Any thread may call every function. A signal handler may call blkin_now(),
 * blkin_time() and blkin_current(). On its own spans, the handler may call every function that does
 * not format a text or an address. The first span of a process takes a lock and opens the library:
 * call blkin_init() before. The first span of a thread allocates: call blkin_init_thread() before.
 *
 * Functions keep errno. With -DBLKIN_DISABLE, all functions are empty and need no library. A file
 * that is compiled with this option and a file that is not may pass spans to each other.
 * doc/library.md is the guide; doc/compatibility.md says what the ABI promises. Do not use names
 * that end in _.
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

struct timespec;
struct sockaddr;

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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define BLKIN_SPAN_SIZE     640 /* bytes of a struct blkin_span */
#define BLKIN_SPAN_SIZE_MIN 192 /* bytes of the smallest span */
#define BLKIN_SPAN_LOG      384 /* bytes of the log in a struct blkin_span, at least */

/* A span of the usual size. Its first 64 bytes are the same in every version of the library. */
struct blkin_span {
    struct blkin_context context; /* read it with blkin_span_context() */
    uint8_t state_;
    uint8_t has_context_;
    uint16_t inside_[7];
    uint64_t room_[(BLKIN_SPAN_SIZE - 64) / 8];
} __attribute__((may_alias));

/*
 * Initializes a span that may never begin: all functions accept it and do nothing. Memory of zeros
 * does the same. Not needed before blkin_span_begin*().
 */
#define BLKIN_SPAN_INIT BLKIN_SPAN_INIT_

/*
 * Room for a span of another size, for example as a member of a struct for requests. The size is
 * 192 to 2048 bytes, a multiple of 8.
 *
 *     struct request {
 *         BLKIN_SPAN_ROOM(256) trace;
 *     };
 *     blkin_span_begin_in(&request->trace, sizeof(request->trace), "write", BLKIN_SERVER, NULL);
 *     blkin_span_end(blkin_span_in(&request->trace));
 *
 * A span takes 134 bytes and its name; an annotation 11 bytes and its text; a number as a tag 14
 * bytes and its key; a text as a tag 5 bytes, the key and the text; a link 49 bytes; a step 20
 * bytes and its name. The remote side takes 21 bytes and its texts; a service of the span's own up
 * to 132 bytes; its usage 64. The first step reserves a quarter of the free room, 128 bytes at
 * most, for steps that find no other room: such a step becomes an event of its own at its end.
 */
#define BLKIN_SPAN_ROOM(size) BLKIN_SPAN_ROOM_(size)

/* ---- the process ---- */

/* Returns the version of the library in use; BLKIN_VERSION is that of the header. */
BLKIN_API_ unsigned blkin_version(void) BLKIN_ELSE_(BLKIN_VERSION);

/*
 * Sets the service of all spans without a service of their own: its name, its address as text (""
 * or NULL: unknown) and its listening port (0: unknown). Copied. A name of NULL restores the
 * default, the program's name. A span has the service that is set at the span's end. Call this
 * function at the start of main(), and seldom later: the library keeps only the last four services.
 */
BLKIN_API_ void blkin_set_service(const char *name, const char *ip, uint16_t port) BLKIN_ELSE_();

/* Sets the version in process events, such as "ceph-osd 19.2.0", from the next event on. NULL:
 * none. Borrowed until the process ends. Readers see at most 100 bytes. */
BLKIN_API_ void blkin_set_version(const char *version) BLKIN_ELSE_();

/*
 * Does the periodic work if it is due, as recorded spans do once a second: records the event
 * "blkin:process", looks for the agent, and reads policy files that have changed. A daemon that may
 * be idle calls this function from a timer, so that readers see time advance. Costs about 10 ns if
 * the work is not due. The first call opens the library, if blkin_init() has not been called.
 */
BLKIN_API_ void blkin_heartbeat(void) BLKIN_ELSE_();

/*
 * Sets how the traces that this process starts are sampled: "always", "never", "ratio=0.01",
 * "rate=100" (traces per second). Optional parts follow: rules for names of root spans, the least
 * severity of annotations, a level of usage: "ratio=0.01,scrub:never,severity=notice,usage=2".
 * At most 32 rules; a name has at most 63 bytes, the text less than 1024. A trace that arrives
 * with a decision keeps it. The environment variable BLKIN_SAMPLING and a file set the policy, too:
 * see doc/library.md. blkin_init() or the first span reads both, so a call after blkin_init()
 * overrides both. A file that changes later overrides the call. Returns 0, or -EINVAL for NULL or a
 * text that is no policy: the policy then stays. Takes a lock: not for signal handlers.
 */
BLKIN_API_ int blkin_set_sampling(const char *policy) BLKIN_ELSE_(0);

/*
 * Sets the level of usage, which is measured while a thread works for a span and recorded as tags.
 * 0, the default: nothing; 1: time on a CPU and off it; 2: also switches, preemptions, page faults
 * and dirtied pages; 3: also the wait for a CPU. See "Usage" in doc/library.md. Applies to spans
 * that begin from now on, unless the sampling policy has a level. Returns 0, or -EINVAL for another
 * level. Takes a lock: not for signal handlers.
 */
BLKIN_API_ int blkin_set_usage(int level) BLKIN_ELSE_(0);

/*
 * Sets the rules by which a span raises an alarm at its end: the event "blkin:slow". "blkin agent"
 * then fetches the whole trace. Example: "osd*:write>20ms, *>100ms, error, max=50/s". A rule is
 * NAME>DURATION or SERVICE:NAME>DURATION, with globs and a unit of ns, us, ms or s. The rules
 * "error", SERVICE:error and SERVICE:NAME:error match failed spans. max limits the alarms of this
 * process, 100 per second by default. "": no rule. The environment variable BLKIN_SLOW and a file
 * set the rules, too, as with blkin_set_sampling(). A program without any of them has the agent's
 * rules. Returns 0, or -EINVAL for NULL or a text with a mistake: the rules then stay. Takes a
 * lock: not for signal handlers.
 */
BLKIN_API_ int blkin_set_slow(const char *rules) BLKIN_ELSE_(0);

/* Returns the time of the span clock: CLOCK_MONOTONIC in ns. Costs half of clock_gettime() where
 * the kernel trusts the CPU's counter. */
BLKIN_API_ uint64_t blkin_now(void) BLKIN_ELSE_(0);

/* Converts a time of clock_gettime(CLOCK_MONOTONIC) to ns, for the functions that take a time. */
BLKIN_API_ uint64_t blkin_time(const struct timespec *monotonic) BLKIN_ELSE_(0);

/* ---- begin ---- */

/* Returns true if an agent or a session records spans, or if the library still looks for an agent.
 * Costs two loads and a test. */
static inline int blkin_is_on(void);

/*
 * Begins a span below another span of this process, or a new trace if parent is NULL. The parent
 * may have ended. A child is not recorded below a root that this function began while neither an
 * agent nor a session recorded: that root has no trace id.
 */
static inline void blkin_span_begin(struct blkin_span *span, const char *name, enum blkin_kind kind,
                                    const struct blkin_span *parent);

/*
 * Begins a span below a context that came from another process (see blkin_context.h), or a new
 * trace if context is NULL or has no ids. The context is copied. Its tracestate must live as long
 * as this span and all spans below it in this process.
 */
static inline void blkin_span_begin_remote(struct blkin_span *span, const char *name,
                                           enum blkin_kind kind,
                                           const struct blkin_context *context);

/* Returns the span in a BLKIN_SPAN_ROOM(), for all other functions. */
static inline struct blkin_span *blkin_span_in(void *room);

/* Begin a span in a BLKIN_SPAN_ROOM() of `size` bytes, and return the span. A span of less than 192
 * bytes is not recorded; the library uses no more than 2048 bytes. */
static inline struct blkin_span *blkin_span_begin_in(void *room, size_t size, const char *name,
                                                     enum blkin_kind kind,
                                                     const struct blkin_span *parent);
static inline struct blkin_span *blkin_span_begin_remote_in(void *room, size_t size,
                                                            const char *name, enum blkin_kind kind,
                                                            const struct blkin_context *context);

/* Returns true if the span is recorded and has not ended. Use it to skip costly preparations. */
static inline int blkin_span_is_recorded(const struct blkin_span *span);

/*
 * Returns the context to send with a request, so that the receiver's spans become children of this
 * span: see the to_* functions of blkin_context.h. Valid as long as the span, also after its end.
 * If this process decides against the trace, the context has a new span id and is not sampled.
 * Every other span that is not recorded has the context that it was begun with, or one without ids.
 */
static inline const struct blkin_context *blkin_span_context(const struct blkin_span *span);

/* ---- annotations, tags, links and errors ---- */

/* Adds an annotation: an event within the span, now, of severity BLKIN_INFO. */
static inline void blkin_span_annotate(struct blkin_span *span, const char *text);

/* Adds an annotation with a severity, unless the sampling policy leaves out that severity.
 * blkin_span_log_at() sets the annotation's time, too. */
static inline void blkin_span_log(struct blkin_span *span, enum blkin_severity severity,
                                  const char *text);
static inline void blkin_span_log_n(struct blkin_span *span, enum blkin_severity severity,
                                    const char *text, size_t length);
static inline void blkin_span_log_at(struct blkin_span *span, enum blkin_severity severity,
                                     const char *text, uint64_t time_ns);

/* Adds an annotation that is formatted as by printf(3). Not for signal handlers. */
BLKIN_API_ __attribute__((format(printf, 2, 3))) void blkin_span_annotatef(struct blkin_span *span,
                                                                           const char *format, ...)
    BLKIN_ELSE_();
BLKIN_API_ __attribute__((format(printf, 2, 0))) void
blkin_span_vannotatef(struct blkin_span *span, const char *format, va_list arguments) BLKIN_ELSE_();

/* Add a tag: a key and a value that describe the request. A text with the key "error" marks the
 * span as failed. */
static inline void blkin_span_tag_string(struct blkin_span *span, const char *key,
                                         const char *value);
static inline void blkin_span_tag_string_n(struct blkin_span *span, const char *key,
                                           const char *value, size_t length);
static inline void blkin_span_tag_int64(struct blkin_span *span, const char *key, int64_t value);
static inline void blkin_span_tag_uint64(struct blkin_span *span, const char *key, uint64_t value);
static inline void blkin_span_tag_double(struct blkin_span *span, const char *key, double value);
static inline void blkin_span_tag_bool(struct blkin_span *span, const char *key, int value);

/* Marks the span as failed by a tag "error": Zipkin shows the span in red. message: for example
 * that of strerror(). */
static inline void blkin_span_error(struct blkin_span *span, const char *message);

/*
 * Adds a link to a span that is related, but not the parent: for example to each request that one
 * commit of a journal serves. The ids are copied. A context without ids adds no link.
 */
static inline void blkin_span_link(struct blkin_span *span, const struct blkin_context *context);

/*
 * Keeps the whole trace, even if it was fast: the span raises an alarm at its end, like a slow one.
 * The alarm has `why` as its reason, 120 bytes at most. The span, or its innermost open step, has
 * the same text as the tag blkin.keep. Without room for the tag, the alarm's reason is "keep". The
 * limit max= applies to this alarm, too: see blkin_set_slow(). Only the first call has an effect.
 */
static inline void blkin_span_keep(struct blkin_span *span, const char *why);

/* ---- properties that are known later ---- */

/* Changes the name, for example to that of the operation once the request is decoded. */
static inline void blkin_span_set_name(struct blkin_span *span, const char *name);
static inline void blkin_span_set_name_n(struct blkin_span *span, const char *name, size_t length);

/* Sets the other side of a client or server span: name, address as text, and port. Texts may be
 * NULL, port 0. Copied. */
static inline void blkin_span_set_remote(struct blkin_span *span, const char *name, const char *ip,
                                         uint16_t port);

/*
 * Sets the other side by an address of getpeername(2): IPv4 or IPv6, also IPv4 in IPv6. For another
 * family, sets only the name. Not for signal handlers.
 */
BLKIN_API_ void blkin_span_set_remote_sockaddr(struct blkin_span *span, const char *name,
                                               const struct sockaddr *address, size_t length)
    BLKIN_ELSE_();

/* Sets a service other than the process's, as in blkin_set_service(). Copied. A name of NULL
 * restores the process's service. */
static inline void blkin_span_set_service(struct blkin_span *span, const char *name, const char *ip,
                                          uint16_t port);

/*
 * Sets the span's start, for example to the time when the request entered a queue. The times of
 * annotations do not change. A time in the future changes nothing.
 */
static inline void blkin_span_set_start(struct blkin_span *span, uint64_t time_ns);

/* ---- end ---- */

/* Ends the span and records it. A second end does nothing. */
static inline void blkin_span_end(struct blkin_span *span);

/* Ends a span at a time of the span clock, and records the span. A time before the start makes a
 * span of 0 ns. */
static inline void blkin_span_end_at(struct blkin_span *span, uint64_t time_ns);

/*
 * Discards the span: the span, and spans that begin below it from now on, are not recorded.
 * Children that began before are recorded, and their parent is missing. If the span is streamed,
 * its events stay, and it ends. No other thread may begin a child meanwhile.
 */
static inline void blkin_span_drop(struct blkin_span *span);

/* ---- steps ---- */

/*
 * Begins a step: a child of the span, or of its innermost open step. Until the step's end,
 * annotations, tags, errors, links and the remote side belong to the step; name, service and start
 * belong to the span. The name is cut after 100 bytes. Twelve steps may be open at once, and a span
 * may have a million. A step without room is dropped with all its records, and counted. A step that
 * is open at the span's end ends then, too, and has the tag "blkin.incomplete".
 */
static inline void blkin_step_begin(struct blkin_span *span, const char *name,
                                    enum blkin_kind kind);

/* Ends the innermost open step; without one, it does nothing. */
static inline void blkin_step_end(struct blkin_span *span);

/*
 * Sets *context to that of the innermost open step, or of the span if no step is open. Use it for a
 * step that sends a request, or to begin a span below the step with blkin_span_begin_remote().
 * Unlike blkin_span_context(), this is a use of the span: only one thread at a time.
 */
static inline void blkin_step_context(const struct blkin_span *span, struct blkin_context *context);

/*
 * Records a span that has ended, in one call: for bindings, replay tools and programs that measure
 * times themselves. The buffer has numbers in the host's byte order, unaligned, without padding:
 *
 *     at  bytes
 *      0      1  1, the version of this layout
 *      1      1  enum blkin_kind
 *      2      2  length of the name
 *      4      4  BLKIN_CONTEXT_* flags: the trace's decision, as in a received context;
 *                REMOTE: the parent is in another process
 *      8  8 + 8  trace id, high and low half; both 0: a new trace
 *     24  8 + 8  span id, 0: a new one; the parent's span id, 0: none
 *     40  8 + 8  start and end, of the span clock
 *     56         the name, then attributes up to the end of the buffer, each of which is: type
 *                (1 byte), length of the key (1), length of the value (2), key, value
 *
 *     type    key            value
 *     s       key            text
 *     I U D   key            8 bytes: int64_t, uint64_t, double
 *     B       key            1 byte: 0 or 1
 *     0 to 7  empty          8 bytes: time of the span clock; then an annotation of that severity
 *     l       empty          24 bytes: trace id, high and low half, and span id of a link
 *     r e     service name   2 bytes: port; then the address as text: remote side, own service
 *
 * A text with the key "error" marks the span as failed. Texts are cut as in other functions. The
 * function reads the buffer only during the call. Returns 0, also if the span is not sampled or
 * nobody records, or -EINVAL for a buffer that is not of this form: then nothing is recorded.
 */
BLKIN_API_ int blkin_record_span(const void *buffer, size_t length) BLKIN_ELSE_(0);

/* Returns the calling thread's current span, or NULL. */
BLKIN_API_ struct blkin_span *blkin_current(void) BLKIN_ELSE_(NULL);

/*
 * Makes span (or NULL) the thread's current span. Returns the former current span, so that you can
 * restore that span later. The memory must stay valid while the span is current.
 * BLKIN_CURRENT_SCOPE() sets and restores.
 */
BLKIN_API_ struct blkin_span *blkin_set_current(struct blkin_span *span) BLKIN_ELSE_(NULL);

#ifdef __cplusplus
}
#endif

#include "blkin_inline.h"

#pragma GCC diagnostic pop

/* ---- macros ---- */

/* In BLKIN_ANNOTATE() to BLKIN_KEEP(), span may be NULL. The program evaluates the other arguments
 * only if the span is recorded. */

/* blkin_span_annotate(), blkin_span_annotatef(), blkin_span_log(). */
#define BLKIN_ANNOTATE(span, text)      BLKIN_IF_(span, blkin_span_annotate(blkin_it_, (text)))
#define BLKIN_ANNOTATEF(span, ...)      BLKIN_IF_(span, blkin_span_annotatef(blkin_it_, __VA_ARGS__))
#define BLKIN_LOG(span, severity, text) BLKIN_IF_(span, blkin_span_log(blkin_it_, severity, (text)))

/* blkin_span_tag_*(), blkin_span_error(), blkin_span_link(), blkin_span_keep(). */
#define BLKIN_TAG_STRING(span, key, v) BLKIN_IF_(span, blkin_span_tag_string(blkin_it_, (key), (v)))
#define BLKIN_TAG_INT64(span, key, v)  BLKIN_IF_(span, blkin_span_tag_int64(blkin_it_, (key), (v)))
#define BLKIN_TAG_UINT64(span, key, v) BLKIN_IF_(span, blkin_span_tag_uint64(blkin_it_, (key), (v)))
#define BLKIN_TAG_DOUBLE(span, key, v) BLKIN_IF_(span, blkin_span_tag_double(blkin_it_, (key), (v)))
#define BLKIN_TAG_BOOL(span, key, v)   BLKIN_IF_(span, blkin_span_tag_bool(blkin_it_, (key), (v)))
#define BLKIN_ERROR(span, message)     BLKIN_IF_(span, blkin_span_error(blkin_it_, (message)))
#define BLKIN_LINK(span, context)      BLKIN_IF_(span, blkin_span_link(blkin_it_, (context)))
#define BLKIN_KEEP(span, why)          BLKIN_IF_(span, blkin_span_keep(blkin_it_, (why)))

/* Each macro begins a span or a step, or sets the current span. The end of the block, also by
 * return, ends the span or step, or restores the current span. */
#define BLKIN_SCOPE(span, name, kind, parent) BLKIN_SCOPE_(span, name, kind, parent)
#define BLKIN_STEP_SCOPE(span, name, kind)    BLKIN_STEP_SCOPE_(span, name, kind)
#define BLKIN_CURRENT_SCOPE(span)             BLKIN_CURRENT_SCOPE_(span)

#endif /* BLKIN_H */
