/*
 * The original BlkKin C API: the program annotates a trace, and each annotation is one event.
 *
 * Source compatible with the original library (ceph/blkin at commit 63711bf): the same structs,
 * constants, functions, macros and return codes. New programs may prefer the span API of blkin.h.
 *
 * Rules that hold for everything here:
 *  - The caller allocates all structs, for example on the stack. The library keeps no pointer to
 *    them, and no call has to release them.
 *  - Strings and endpoints are borrowed, never copied: the caller keeps each alive while a trace or
 *    an annotation that refers to it is in use.
 *  - Functions return 0, or -EINVAL for an argument that they cannot use, and do not change errno.
 *    There is no other error: while neither a session nor an agent records, recording does nothing.
 *  - Every function may be called from any thread at any time. Two threads that write the same
 *    struct at the same time need a lock of their own.
 *  - No function is async-signal-safe unless its comment says so: the first record of a process and
 *    of a thread takes a lock and allocates.
 *  - A trace id of 0 means "not traced": recording on such a trace does nothing and returns 0. The
 *    original's C functions recorded such traces; the original's C++ classes did not.
 *
 * -DBLKIN_DISABLE makes every function here an inline one, and needs no library: nothing is
 * recorded, a new trace is not traced, and the ids of another process are passed on as they are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ZIPKIN_C_H_
#define ZIPKIN_C_H_

#include "blkin_base.h"

#include <stdint.h>
#include <asm/byteorder.h>
#ifdef BLKIN_DISABLE
#include <errno.h>
#endif /* BLKIN_DISABLE */

#ifdef __cplusplus
extern "C" {
#endif

#ifndef BLKIN_DISABLE

/* Zipkin's core annotations, for BLKIN_TIMESTAMP: they give a span its kind, start and end. */
BLKIN_PUBLIC extern const char *const CLIENT_SEND;          /* "cs": a client sent a request */
BLKIN_PUBLIC extern const char *const CLIENT_RECV;          /* "cr": a client has its reply */
BLKIN_PUBLIC extern const char *const SERVER_SEND;          /* "ss": a server sent its reply */
BLKIN_PUBLIC extern const char *const SERVER_RECV;          /* "sr": a server has a request */
BLKIN_PUBLIC extern const char *const WIRE_SEND;            /* "ws" */
BLKIN_PUBLIC extern const char *const WIRE_RECV;            /* "wr" */
BLKIN_PUBLIC extern const char *const CLIENT_SEND_FRAGMENT; /* "csf" */
BLKIN_PUBLIC extern const char *const CLIENT_RECV_FRAGMENT; /* "crf" */
BLKIN_PUBLIC extern const char *const SERVER_SEND_FRAGMENT; /* "ssf" */
BLKIN_PUBLIC extern const char *const SERVER_RECV_FRAGMENT; /* "srf" */

#endif /* BLKIN_DISABLE */

/* clang-format off */
#define BLKIN_EACH_CONSTANT_(X)                                                                    \
    X(CLIENT_SEND, "cs") X(CLIENT_RECV, "cr") X(SERVER_SEND, "ss") X(SERVER_RECV, "sr")            \
    X(WIRE_SEND, "ws") X(WIRE_RECV, "wr")                                                          \
    X(CLIENT_SEND_FRAGMENT, "csf") X(CLIENT_RECV_FRAGMENT, "crf")                                  \
    X(SERVER_SEND_FRAGMENT, "ssf") X(SERVER_RECV_FRAGMENT, "srf")
/* clang-format on */

/* The service that records: Zipkin's endpoint. */
struct blkin_endpoint {
    const char *ip; /* IPv4 or IPv6 address as text; "NaN" if not known */
    int16_t port;   /* the listening port's 16 bits: 50000 is stored as -15536, recorded as 50000 */
    const char *name; /* service name, such as "osd.3" */
};

/* The ids that one process sends to the next, so that its spans join the trace. Host byte order. */
struct blkin_trace_info {
    int64_t trace_id;       /* 0: not traced */
    int64_t span_id;        /* all 64 bits are random: may be negative */
    int64_t parent_span_id; /* 0: a root span */
};

/* A struct blkin_trace_info in the form to send: 24 bytes, three big-endian integers. */
struct blkin_trace_info_packed {
    __be64 trace_id;
    __be64 span_id;
    __be64 parent_span_id;
} __attribute__((packed));

/* A span: its name, its ids and the endpoint that records it. */
struct blkin_trace {
    const char *name;
    struct blkin_trace_info info;
    const struct blkin_endpoint *endpoint;
};

typedef enum {
    ANNOT_STRING = 0, /* key and val_str: a tag of the span */
    ANNOT_INTEGER,    /* key and val_int: a tag of the span */
    ANNOT_TIMESTAMP   /* val_str is the event; its time is that of blkin_record() */
} blkin_annotation_type;

struct blkin_annotation {
    blkin_annotation_type type;
    const char *key;
    union {
        const char *val_str;
        int64_t val_int;
    };
    const struct blkin_endpoint *endpoint; /* NULL: the trace's own */
};

#ifndef BLKIN_DISABLE

/*
 * Initializes a new root span with ids of blkin_init_trace_info(). name and endpoint are borrowed.
 * Either may be NULL and set later: blkin_record() needs a name, and an endpoint of the trace or of
 * the annotation. Returns -EINVAL if new_trace is NULL.
 */
BLKIN_PUBLIC int blkin_init_new_trace(struct blkin_trace *new_trace, const char *name,
                                      const struct blkin_endpoint *endpoint);

/*
 * Sets new ids of a root span: trace_id = span_id = a random number other than 0, parent_span_id =
 * 0. trace_info must not be NULL. Each thread has a generator (splitmix64 with one mixing round,
 * seeded by getrandom(2)): ids are unique, but not secret.
 */
BLKIN_PUBLIC void blkin_init_trace_info(struct blkin_trace_info *trace_info);

/*
 * Initializes a new span below parent, in the same trace, with a new span id. endpoint NULL: the
 * parent's. child and parent may be the same struct. Returns -EINVAL if child or parent is NULL, or
 * neither gives an endpoint.
 */
BLKIN_PUBLIC int blkin_init_child(struct blkin_trace *child, const struct blkin_trace *parent,
                                  const struct blkin_endpoint *endpoint, const char *child_name);

/*
 * Initializes a new span below a span of another process, whose info came with a request. The info
 * is copied. Returns -EINVAL if child, info or endpoint is NULL.
 */
BLKIN_PUBLIC int blkin_init_child_info(struct blkin_trace *child,
                                       const struct blkin_trace_info *info,
                                       const struct blkin_endpoint *endpoint,
                                       const char *child_name);

/* Initializes an endpoint. ip NULL becomes "NaN", which readers take as "not known". Returns
 * -EINVAL if endpoint is NULL. */
BLKIN_PUBLIC int blkin_init_endpoint(struct blkin_endpoint *endpoint, const char *ip, int16_t port,
                                     const char *name);

/* Initializes a tag with a text. Returns -EINVAL if annotation, key or val is NULL. */
BLKIN_PUBLIC int blkin_init_string_annotation(struct blkin_annotation *annotation, const char *key,
                                              const char *val,
                                              const struct blkin_endpoint *endpoint);

/* Initializes a tag with an integer. Returns -EINVAL if annotation or key is NULL. */
BLKIN_PUBLIC int blkin_init_integer_annotation(struct blkin_annotation *annotation, const char *key,
                                               int64_t val, const struct blkin_endpoint *endpoint);

/* Initializes an event, whose time will be that of blkin_record(). Returns -EINVAL if annotation or
 * event is NULL. */
BLKIN_PUBLIC int blkin_init_timestamp_annotation(struct blkin_annotation *annotation,
                                                 const char *event,
                                                 const struct blkin_endpoint *endpoint);

/*
 * Records the annotation now, as one LTTng-UST event of provider "zipkin" if a session has it
 * enabled, and as the same event for an agent. The agent's event has at most 240 bytes of a name,
 * an address or a key, and 2400 bytes of an event or a value. Returns -EINVAL, and records nothing,
 * in four cases: trace or annotation is NULL; the trace has no name; neither has an endpoint with
 * ip and name; the annotation has an unknown type, or lacks its key or string.
 */
BLKIN_PUBLIC int blkin_record(const struct blkin_trace *trace,
                              const struct blkin_annotation *annotation);

/* Copies the ids of trace to *info. Returns -EINVAL if either is NULL. */
BLKIN_PUBLIC int blkin_get_trace_info(const struct blkin_trace *trace,
                                      struct blkin_trace_info *info);

/* Copies *info to the ids of trace. Returns -EINVAL if either is NULL. */
BLKIN_PUBLIC int blkin_set_trace_info(struct blkin_trace *trace,
                                      const struct blkin_trace_info *info);

/* Sets ids, name and endpoint of trace; makes no new id. Returns -EINVAL if any argument is NULL.
 */
BLKIN_PUBLIC int blkin_set_trace_properties(struct blkin_trace *trace,
                                            const struct blkin_trace_info *info, const char *name,
                                            const struct blkin_endpoint *endpoint);

/* Converts the ids to the 24 bytes to send. Async-signal-safe. Returns -EINVAL if either is NULL.
 */
BLKIN_PUBLIC int blkin_pack_trace_info(const struct blkin_trace_info *info,
                                       struct blkin_trace_info_packed *packed_info);

/* Converts 24 received bytes to ids. Async-signal-safe. Returns -EINVAL if either is NULL. */
BLKIN_PUBLIC int blkin_unpack_trace_info(const struct blkin_trace_info_packed *packed_info,
                                         struct blkin_trace_info *info);

#else /* BLKIN_DISABLE */

#define BLKIN_CONSTANT_(name, text) static const char *const name __attribute__((unused)) = text;
BLKIN_EACH_CONSTANT_(BLKIN_CONSTANT_)

static inline void blkin_init_trace_info(struct blkin_trace_info *trace_info)
{
    trace_info->trace_id = 0;
    trace_info->span_id = 0;
    trace_info->parent_span_id = 0;
}

static inline int blkin_init_child_info(struct blkin_trace *child,
                                        const struct blkin_trace_info *info,
                                        const struct blkin_endpoint *endpoint,
                                        const char *child_name)
{
    if (!child || !info || !endpoint)
        return -EINVAL;
    child->name = child_name;
    child->info = *info;
    child->endpoint = endpoint;
    return 0;
}

static inline int blkin_init_child(struct blkin_trace *child, const struct blkin_trace *parent,
                                   const struct blkin_endpoint *endpoint, const char *child_name)
{
    if (!parent)
        return -EINVAL;
    return blkin_init_child_info(child, &parent->info, endpoint ? endpoint : parent->endpoint,
                                 child_name);
}

static inline int blkin_record(const struct blkin_trace *trace,
                               const struct blkin_annotation *annotation)
{
    return trace && annotation ? 0 : -EINVAL;
}

#endif /* BLKIN_DISABLE */

/* Functions with the same code in the library and, with -DBLKIN_DISABLE, inline. */
#ifdef BLKIN_DISABLE
#define BLKIN_PLAIN_ static inline
#else
#define BLKIN_PLAIN_
#endif /* BLKIN_DISABLE */
#if defined(BLKIN_DISABLE) || defined(BLKIN_HAS_PLAIN_)

BLKIN_PLAIN_ int blkin_init_endpoint(struct blkin_endpoint *endpoint, const char *ip, int16_t port,
                                     const char *name)
{
    if (!endpoint)
        return -EINVAL;
    endpoint->ip = ip ? ip : "NaN";
    endpoint->port = port;
    endpoint->name = name;
    return 0;
}

BLKIN_PLAIN_ int blkin_init_string_annotation(struct blkin_annotation *annotation, const char *key,
                                              const char *val,
                                              const struct blkin_endpoint *endpoint)
{
    if (!annotation || !key || !val)
        return -EINVAL;
    annotation->type = ANNOT_STRING;
    annotation->key = key;
    annotation->val_str = val;
    annotation->endpoint = endpoint;
    return 0;
}

BLKIN_PLAIN_ int blkin_init_integer_annotation(struct blkin_annotation *annotation, const char *key,
                                               int64_t val, const struct blkin_endpoint *endpoint)
{
    if (!annotation || !key)
        return -EINVAL;
    annotation->type = ANNOT_INTEGER;
    annotation->key = key;
    annotation->val_int = val;
    annotation->endpoint = endpoint;
    return 0;
}

BLKIN_PLAIN_ int blkin_init_timestamp_annotation(struct blkin_annotation *annotation,
                                                 const char *event,
                                                 const struct blkin_endpoint *endpoint)
{
    if (!annotation || !event)
        return -EINVAL;
    annotation->type = ANNOT_TIMESTAMP;
    annotation->key = 0;
    annotation->val_str = event;
    annotation->endpoint = endpoint;
    return 0;
}

BLKIN_PLAIN_ int blkin_get_trace_info(const struct blkin_trace *trace,
                                      struct blkin_trace_info *info)
{
    if (!trace || !info)
        return -EINVAL;
    *info = trace->info;
    return 0;
}

BLKIN_PLAIN_ int blkin_set_trace_info(struct blkin_trace *trace,
                                      const struct blkin_trace_info *info)
{
    if (!trace || !info)
        return -EINVAL;
    trace->info = *info;
    return 0;
}

BLKIN_PLAIN_ int blkin_set_trace_properties(struct blkin_trace *trace,
                                            const struct blkin_trace_info *info, const char *name,
                                            const struct blkin_endpoint *endpoint)
{
    if (!trace || !info || !name || !endpoint)
        return -EINVAL;
    trace->name = name;
    trace->info = *info;
    trace->endpoint = endpoint;
    return 0;
}

BLKIN_PLAIN_ int blkin_pack_trace_info(const struct blkin_trace_info *info,
                                       struct blkin_trace_info_packed *packed_info)
{
    if (!info || !packed_info)
        return -EINVAL;
    packed_info->trace_id = __cpu_to_be64((uint64_t)info->trace_id);
    packed_info->span_id = __cpu_to_be64((uint64_t)info->span_id);
    packed_info->parent_span_id = __cpu_to_be64((uint64_t)info->parent_span_id);
    return 0;
}

BLKIN_PLAIN_ int blkin_unpack_trace_info(const struct blkin_trace_info_packed *packed_info,
                                         struct blkin_trace_info *info)
{
    if (!packed_info || !info)
        return -EINVAL;
    info->trace_id = (int64_t)__be64_to_cpu(packed_info->trace_id);
    info->span_id = (int64_t)__be64_to_cpu(packed_info->span_id);
    info->parent_span_id = (int64_t)__be64_to_cpu(packed_info->parent_span_id);
    return 0;
}

BLKIN_PLAIN_ int blkin_init_new_trace(struct blkin_trace *new_trace, const char *name,
                                      const struct blkin_endpoint *endpoint)
{
    if (!new_trace)
        return -EINVAL;
    new_trace->name = name;
    blkin_init_trace_info(&new_trace->info);
    new_trace->endpoint = endpoint;
    return 0;
}

#endif /* BLKIN_DISABLE || BLKIN_HAS_PLAIN_ */

/*
 * Each macro initializes an annotation and records it. endp NULL: the trace's endpoint. Each macro
 * is a single statement, safe as the body of an if/else, and evaluates its arguments once. With an
 * argument that blkin_record() refuses, a macro records nothing.
 */
#define BLKIN_TIMESTAMP(trace, endp, event)                                       \
    do {                                                                          \
        struct blkin_annotation blkin_annot_;                                     \
        if (blkin_init_timestamp_annotation(&blkin_annot_, (event), (endp)) == 0) \
            (void)blkin_record((trace), &blkin_annot_);                           \
    } while (0)

#define BLKIN_KEYVAL_STRING(trace, endp, key, val)                                  \
    do {                                                                            \
        struct blkin_annotation blkin_annot_;                                       \
        if (blkin_init_string_annotation(&blkin_annot_, (key), (val), (endp)) == 0) \
            (void)blkin_record((trace), &blkin_annot_);                             \
    } while (0)

#define BLKIN_KEYVAL_INTEGER(trace, endp, key, val)                                  \
    do {                                                                             \
        struct blkin_annotation blkin_annot_;                                        \
        if (blkin_init_integer_annotation(&blkin_annot_, (key), (val), (endp)) == 0) \
            (void)blkin_record((trace), &blkin_annot_);                              \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif /* ZIPKIN_C_H_ */
