/*
 * Trace context: the ids and the sampling decision that one process sends to the next. The formats
 * are W3C Trace Context, B3, OpenCensus binary, the original 24 bytes, and the environment of a
 * child process.
 *
 *     from_*  reads what a peer sent into a struct blkin_context
 *     to_*    writes a struct blkin_context for a peer
 *
 * Rules that hold for every function here:
 *  - A from_* function returns 0, or -EINVAL for input that the format does not allow (and for a
 *    NULL argument). On error *context is unchanged. On success every field of it is set.
 *  - Input is (text, length), length in bytes. The text need not end with a NUL, and functions read
 *    no byte behind it. White space around the value is an error: a caller that reads raw header
 *    lines must strip it first, as HTTP libraries do.
 *  - A to_* function writes into a buffer of the caller. The buffer has the constant size that the
 *    function names, or the size that the caller passes. Text ends with a NUL. Functions that write
 *    a struct return 0; the others return the number of bytes written without the NUL. The result
 *    is -EINVAL for a NULL argument, and if the context has nothing that the format can contain;
 *    the buffer is then unchanged.
 *  - No function allocates, takes a lock, keeps state or changes errno. Any thread may call every
 *    function at any time. All are async-signal-safe, unless their comment says the opposite.
 *    Two threads that write the same struct at the same time need a lock of their own.
 *  - The only pointer a context holds is its tracestate, which is borrowed: see
 *    blkin_context_set_tracestate().
 *
 * -DBLKIN_DISABLE makes every function here an inline one, and needs no library. All functions then
 * return -EINVAL, except blkin_context_from_environment(), which returns -ENOENT, and
 * blkin_context_has_ids(), which works.
 *
 * The fields that each format carries, and that survive a hop:
 *
 *                    128-bit   parent    the decision          debug  random  tracestate
 *                    trace id  span id
 *     W3C            yes       -         record, drop          -      yes     yes
 *     B3             yes       yes       record, drop, open    yes    -       -
 *     OpenCensus     yes       -         record, open          -      -       -
 *     packed (24 B)  -         yes       record, drop (no ids) -      -       -
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CONTEXT_H_
#define BLKIN_CONTEXT_H_

#include "blkin_base.h"

#include <stddef.h>
#include <stdint.h>
#ifdef BLKIN_DISABLE
#include <errno.h>
#endif /* BLKIN_DISABLE */

#ifdef __cplusplus
extern "C" {
#endif

/* -DBLKIN_DISABLE: see BLKIN_ELSE_() */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Bits of blkin_context.flags. */
#define BLKIN_CONTEXT_SAMPLED 1u  /* record the trace; implies DECIDED */
#define BLKIN_CONTEXT_DECIDED 2u  /* the sender has decided; if not set, the receiver decides */
#define BLKIN_CONTEXT_DEBUG   4u  /* record whatever a sampler decides; implies SAMPLED, DECIDED */
#define BLKIN_CONTEXT_RANDOM  8u  /* the low 56 bits of the trace id are random (W3C level 2) */
#define BLKIN_CONTEXT_REMOTE  16u /* came from another process: every from_* function sets it */

/*
 * Ids are numbers in host byte order. "{0}" is an empty context. from_* functions also set the
 * implied flags; to_* functions add missing ones.
 */
struct blkin_context {
    uint64_t trace_id_high;     /* 0: a 64-bit trace id */
    uint64_t trace_id;          /* low 64 bits; both 0: no context */
    uint64_t span_id;           /* of the sender: the parent of the receiver's spans */
    uint64_t parent_span_id;    /* parent of span_id; 0: none or not known */
    uint32_t flags;             /* BLKIN_CONTEXT_* */
    uint32_t tracestate_length; /* bytes */
    const char *tracestate;     /* borrowed, W3C, passed on as is; NULL: none */
};

/*
 * Returns 1 if the context names a span: if it has a trace id and a span id. Returns 0 if it is
 * empty, or has only a sampling decision, as B3 and the packed form can. The context must not be
 * NULL.
 */
static inline int blkin_context_has_ids(const struct blkin_context *context)
{
    return (context->trace_id_high | context->trace_id) != 0 && context->span_id != 0;
}

/* ---------------------------------------------------------------- W3C Trace Context */

#define BLKIN_TRACEPARENT_SIZE 56 /* with the NUL */

/*
 * Reads the value of a "traceparent" header: 00-<32 hex>-<16 hex>-<2 hex>, lower case. Version ff,
 * and a trace or span id of zeros, are errors. If the version is above 00, only the first 55
 * characters and the flag "sampled" count; the next character (if any) must be "-". A trace
 * id with 16 leading zeros becomes a 64-bit one. The format cannot say "not decided", so DECIDED is
 * always set; SAMPLED is as sent. The context has no tracestate yet.
 * Source: W3C Trace Context level 1, 3.2.2 and 3.2.4; level 2 for the random flag.
 */
BLKIN_API_ int blkin_context_from_traceparent(struct blkin_context *context, const char *text,
                                              size_t length) BLKIN_ELSE_(-EINVAL);

/*
 * Writes the value of a "traceparent" header, version 00, to buffer[BLKIN_TRACEPARENT_SIZE], and
 * returns 55. A 64-bit trace id gets 16 leading zeros. parent_span_id is lost. DEBUG becomes
 * "sampled". A missing decision becomes "not sampled", as the specification requires. Returns
 * -EINVAL without ids.
 * Source: W3C Trace Context level 1, 3.2.2; level 2 for the random flag.
 */
BLKIN_API_ int blkin_context_to_traceparent(const struct blkin_context *context, char *buffer)
    BLKIN_ELSE_(-EINVAL);

#define BLKIN_TRACESTATE_SIZE 513   /* 512 characters, which each host should pass on, and a NUL */
#define BLKIN_TRACESTATE_MAX  65535 /* bytes: a longer one is refused */

/*
 * Attaches the value of a "tracestate" header, after the traceparent that came with it. (Several
 * such headers count as one: join them with commas, in order.) The text is borrowed, not copied:
 * the caller keeps it alive and unchanged for as long as the context, or a copy of it, is in use.
 * The functions pass on the text byte for byte. A list without entries, such as "", leaves the
 * context without a tracestate. Returns 0. Returns -EINVAL in four cases: an argument is NULL; the
 * context has no ids; the text is not a list of at most 32 members (empty ones count); the text is
 * longer than BLKIN_TRACESTATE_MAX. The context then stays as it was, and the trace continues. Keys
 * follow level 2, which allows all keys of level 1. Two entries with the same key are no error:
 * both are passed on.
 * Source: W3C Trace Context level 2, 3.3.1.
 */
BLKIN_API_ int blkin_context_set_tracestate(struct blkin_context *context, const char *text,
                                            size_t length) BLKIN_ELSE_(-EINVAL);

/*
 * Writes the value of a "tracestate" header to buffer[size]. The size is at least 1. The
 * specification advises BLKIN_TRACESTATE_SIZE or more; with tracestate_length + 1, everything fits.
 * To shorten a list that does not fit, the function removes, in this order and until the rest fits:
 * white space around entries and empty members; entries of more than 128 characters, from the last;
 * other entries, from the last. The function cuts no entry. Returns the length. If the context has
 * no tracestate, or no entry fits, returns 0 with an empty string: then do not send the header.
 * Returns -EINVAL without ids, or if size is 0. Returns -EINVAL also if the function notices an
 * invalid tracestate that was set without blkin_context_set_tracestate().
 * Source: W3C Trace Context level 1, 3.3.1.5.
 */
BLKIN_API_ int blkin_context_to_tracestate(const struct blkin_context *context, char *buffer,
                                           size_t size) BLKIN_ELSE_(-EINVAL);

/* ---------------------------------------------------------------- B3 */

#define BLKIN_B3_SIZE 69 /* with the NUL */

/*
 * Reads the value of a "b3" header: <16 or 32 hex>-<16 hex>[-<0, 1 or d>][-<16 hex>], lower case:
 * trace id, span id, decision, parent span id. Without a decision, DECIDED is not set. (The
 * specification allows no parent without a decision, but Brave does.) A parent span id of zeros
 * means no parent; other ids of zeros are errors. A decision alone, "0", "1" or "d", makes a
 * context with flags and no ids: start a new trace and obey the decision.
 * Source: openzipkin/b3-propagation README, "Single Header"; zeros for no parent as in Brave.
 */
BLKIN_API_ int blkin_context_from_b3(struct blkin_context *context, const char *text, size_t length)
    BLKIN_ELSE_(-EINVAL);

/*
 * Writes the value of a "b3" header to buffer[BLKIN_B3_SIZE]. Returns its length, at most 68. A
 * context with a decision, and with ids that are all 0, becomes the decision alone. The tracestate
 * and RANDOM are lost. Returns -EINVAL if there are neither ids nor a decision. Returns -EINVAL
 * also if the trace id or the span id is missing while another id is set.
 * Source: openzipkin/b3-propagation README, "Single Header".
 */
BLKIN_API_ int blkin_context_to_b3(const struct blkin_context *context, char *buffer)
    BLKIN_ELSE_(-EINVAL);

/* Borrowed text, not NUL-terminated. text NULL: the request did not have this field. */
struct blkin_context_text {
    const char *text;
    size_t length; /* bytes */
};

/* The received values of the five B3 headers. Read during the call only. */
struct blkin_context_b3_fields {
    struct blkin_context_text trace_id;       /* X-B3-TraceId: 16 or 32 hex */
    struct blkin_context_text span_id;        /* X-B3-SpanId: 16 hex */
    struct blkin_context_text parent_span_id; /* X-B3-ParentSpanId: 16 hex */
    struct blkin_context_text sampled;        /* X-B3-Sampled: 0, 1, or false, true in any case */
    struct blkin_context_text flags;          /* X-B3-Flags: 1 is debug */
};

/* The values of the five B3 headers, to be sent. An empty string: do not send that header. */
struct blkin_context_b3_values {
    char trace_id[33];
    char span_id[17];
    char parent_span_id[17];
    char sampled[2];
    char flags[2];
};

/*
 * Reads the five "X-B3-" headers. Ids are as in blkin_context_from_b3(): trace id and span id, or
 * no ids. Flags "1" means debug, even if "sampled" says "0"; other flags are ignored, as the
 * specification requires. With neither "sampled" nor debug, DECIDED is not set. A decision without
 * ids makes a context without ids. Returns -EINVAL also if the fields have neither ids nor a
 * decision, or if a field other than flags is malformed or empty.
 * Source: openzipkin/b3-propagation README, "Multiple Headers".
 */
BLKIN_API_ int blkin_context_from_b3_fields(struct blkin_context *context,
                                            const struct blkin_context_b3_fields *fields)
    BLKIN_ELSE_(-EINVAL);

/*
 * Writes the five "X-B3-" headers, and returns 0. Debug is sent as flags alone, without "sampled".
 * The tracestate and RANDOM are lost. Returns -EINVAL as blkin_context_to_b3() does.
 * Source: openzipkin/b3-propagation README, "Multiple Headers".
 */
BLKIN_API_ int blkin_context_to_b3_fields(const struct blkin_context *context,
                                          struct blkin_context_b3_values *values)
    BLKIN_ELSE_(-EINVAL);

/* ---------------------------------------------------------------- binary forms */

#define BLKIN_OPENCENSUS_SIZE 29 /* bytes; binary, no NUL */

/*
 * Reads the OpenCensus binary form ("grpc-trace-bin"): 00, then fields in the order of their ids:
 * 00 <16 bytes trace id>, 01 <8 bytes span id>, 02 <1 byte options>. As the specification says,
 * options may be missing (then they are 0). The function stops at an unknown field (id above 2), so
 * newer fields do no harm. These are errors: another version; a missing id; an id of zeros; a field
 * that is too short, repeated or out of order. Options bit 0 means SAMPLED. If it is 0, DECIDED is
 * not set, because the format says that the decision may then be deferred. Other bits are not
 * defined and are ignored.
 * Source: census-instrumentation/opencensus-specs, encodings/BinaryEncoding.md.
 */
BLKIN_API_ int blkin_context_from_opencensus(struct blkin_context *context, const void *data,
                                             size_t length) BLKIN_ELSE_(-EINVAL);

/*
 * Writes the OpenCensus binary form to buffer[BLKIN_OPENCENSUS_SIZE]. Returns 29. The tracestate,
 * parent_span_id and RANDOM are lost. DEBUG becomes "sampled". A decision not to record becomes "no
 * decision". Returns -EINVAL without ids.
 * Source: census-instrumentation/opencensus-specs, encodings/BinaryEncoding.md.
 */
BLKIN_API_ int blkin_context_to_opencensus(const struct blkin_context *context, void *buffer)
    BLKIN_ELSE_(-EINVAL);

struct blkin_trace_info_packed; /* 24 bytes: see zipkin_c.h */

/*
 * Reads the original 24 bytes. A trace id of 0 means "not traced": the context then has no ids and
 * is DECIDED, not SAMPLED, for any values of the other two ids. Any other trace id is SAMPLED and
 * DECIDED, because the form has no field for the decision. Returns -EINVAL if there is a trace id
 * and no span id. `packed` may have any alignment.
 * Source: zipkin_c.h, struct blkin_trace_info_packed.
 */
BLKIN_API_ int blkin_context_from_packed(struct blkin_context *context,
                                         const struct blkin_trace_info_packed *packed)
    BLKIN_ELSE_(-EINVAL);

/*
 * Writes the original 24 bytes; returns 0. A context that is DECIDED and not SAMPLED becomes 24
 * bytes of zeros, "not traced", so that the receiver does not record it either. The receiver takes
 * a context that is not DECIDED as sampled. The tracestate, DEBUG and RANDOM are lost. So is the
 * high half of a 128-bit trace id: the receiver's spans appear under the low half, as another
 * trace. Returns -EINVAL for any other context without a span id, or with a trace id whose low half
 * is 0.
 * Source: zipkin_c.h, struct blkin_trace_info_packed.
 */
BLKIN_API_ int blkin_context_to_packed(const struct blkin_context *context,
                                       struct blkin_trace_info_packed *packed) BLKIN_ELSE_(-EINVAL);

/* ---------------------------------------------------------------- environment */

#define BLKIN_TRACEPARENT_VARIABLE_SIZE 68  /* "TRACEPARENT=", the value and the NUL */
#define BLKIN_TRACESTATE_VARIABLE_SIZE  524 /* "TRACESTATE=", 512 characters and the NUL */

/*
 * Reads TRACEPARENT and TRACESTATE of this process. Call it once, at the process's start. An
 * invalid TRACESTATE is dropped. The tracestate is borrowed from the environment: valid until
 * TRACESTATE changes. Returns -ENOENT if TRACEPARENT is not set or empty, and in a set-user-ID
 * program, which must not trust it. Returns -EINVAL if it is malformed. Not async-signal-safe. No
 * other thread may change the environment during the call.
 * Source: OpenTelemetry specification, context/env-carriers.md; W3C Trace Context as above.
 */
BLKIN_API_ int blkin_context_from_environment(struct blkin_context *context) BLKIN_ELSE_(-ENOENT);

/*
 * Writes "TRACEPARENT=<value>" to buffer[BLKIN_TRACEPARENT_VARIABLE_SIZE], for the copied
 * environment of a child: do not change your own. Returns 67. Losses and errors are those of
 * blkin_context_to_traceparent(). Async-signal-safe: may be called between fork(2) and execve(2).
 * Source: OpenTelemetry specification, context/env-carriers.md.
 */
BLKIN_API_ int blkin_context_to_traceparent_variable(const struct blkin_context *context,
                                                     char *buffer) BLKIN_ELSE_(-EINVAL);

/*
 * Writes "TRACESTATE=<value>" to buffer[size], size at least 12; BLKIN_TRACESTATE_VARIABLE_SIZE is
 * the least advised. Shortens a list, and fails, like blkin_context_to_tracestate(). Returns the
 * length. If the context has no tracestate, returns 0 with an empty string. Then remove TRACESTATE
 * from the child's environment, because the value there belongs to another TRACEPARENT.
 * Source: OpenTelemetry specification, context/env-carriers.md.
 */
BLKIN_API_ int blkin_context_to_tracestate_variable(const struct blkin_context *context,
                                                    char *buffer, size_t size) BLKIN_ELSE_(-EINVAL);

#pragma GCC diagnostic pop

#ifdef __cplusplus
}
#endif

#endif /* BLKIN_CONTEXT_H_ */
