/*
 * The decoded event: the interface between trace readers and the assembler.
 *
 * It is a plain struct, so tests can drive the assembler without a trace or a daemon. All members
 * come from a trace and are untrusted: any value, any bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_EVENT_H
#define BLKIN_SPANS_EVENT_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

enum event_kind {
    /* the original's, which has no event for the end of a span */
    EVENT_TIMESTAMP,      /* zipkin:timestamp: value is the annotation */
    EVENT_KEYVAL_TEXT,    /* zipkin:keyval_string, and zipkin:keyval of the oldest library */
    EVENT_KEYVAL_INTEGER, /* zipkin:keyval_integer */
    /* the span API's: doc/format.md describes their fields */
    EVENT_SPAN, /* blkin:span: a whole span */
    EVENT_BEGIN,
    EVENT_ANNOTATION, /* blkin:annotation_*: value is the annotation */
    EVENT_TAG,        /* blkin:tag: log has one record */
    EVENT_END,
    EVENT_PROCESS,
    EVENT_METRIC, /* blkin:metric: about a host */
    EVENT_RULE,   /* of another provider, named by a rule: see rules/pairing.h */
};

/* Where an event was recorded, as far as the trace says. */
struct origin {
    struct text host;       /* of the trace; empty: not known */
    int64_t clock;          /* offset of the trace's clock: distinguishes sessions of one host */
    struct text process;    /* procname context; empty: not known */
    int64_t pid;            /* vpid context; 0: not known */
    int64_t tid;            /* vtid context; 0: not known */
    uint64_t pid_namespace; /* pid_ns context: the pid namespace; 0: not known */
};

/* Identifies a process on its host: two containers may have the same pid. 0: not known. */
static inline uint64_t origin_process(const struct origin *origin)
{
    return origin->pid_namespace << 32 | (uint32_t)origin->pid;
}

static inline int64_t process_pid(uint64_t process)
{
    return (int32_t)process;
}

/* An event may be stamped this much before the moment that it describes: the error of two
 * clocks. */
#define EVENT_AHEAD_NS INT64_C(1000000)

struct rule_event;

/* All texts are borrowed during one call. In each union, the second member is EVENT_METRIC's. */
struct event {
    enum event_kind kind;
    int64_t time_ns; /* since the Unix epoch */
    struct origin origin;
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id; /* 0: none */
    union {
        struct text span_name;
        struct text instance; /* of the group; empty: the group has one instance */
    };
    union {
        struct text service;
        struct text group;
    };
    struct text ip;
    int64_t port;
    struct text key; /* of both keyval kinds; of EVENT_ANNOTATION its severity, as in span.h */
    union {
        struct text value;  /* of annotations and EVENT_KEYVAL_TEXT */
        struct text values; /* unsigned decimal numbers, separated by blanks */
    };
    union {
        int64_t integer;    /* of EVENT_KEYVAL_INTEGER */
        uint64_t period_ms; /* the period in which the group is sampled */
    };

    /* of the span API's events */
    union {
        struct text log;
        struct text names; /* NAME:UNIT:KIND, separated by blanks; empty: unchanged */
    };
    uint64_t duration_ns;
    int64_t age_ns;  /* the event describes the moment time_ns - age_ns; may be slightly below 0 */
    uint64_t thread; /* number of the recording thread */
    uint64_t sequence;  /* of that thread's events */
    uint64_t span_kind; /* enum blkin_kind */
    uint64_t flags;     /* BLKIN_SPAN_* */
    uint64_t dropped;   /* annotations, tags and steps that found no room in the program */
    uint64_t realtime;  /* of EVENT_PROCESS: wall clock, ns since the Unix epoch */

    bool is_cut; /* of the original's events: a text is only the beginning of a longer text */

    struct rule_event *ruled; /* of EVENT_RULE */
};

/* A metric's empty text is recorded as "-". */
static inline void event_hide_dashes(struct event *event)
{
    if (text_is(event->instance, "-"))
        event->instance.length = 0;
    if (text_is(event->names, "-"))
        event->names.length = 0;
}

/* The result of decoding. */
enum decoded {
    DECODED,
    DECODED_FOREIGN,    /* not an event of ours */
    DECODED_ALARM,      /* blkin:slow: the assembler does not use it */
    DECODED_UNWANTED,   /* of a trace or a time that the agent does not look for */
    DECODED_UNREADABLE, /* ours by name, but a field is missing or wrong */
    DECODED_NEWER,      /* of a version of the format that this sink does not know */
    DECODED_NO_MEMORY,
};

/* ---- packed.c: packed texts ------------------------------------------------------------------ */

/* A packed text has this number of low bits of the moment; the clock supplies the upper bits. */
#define PACKED_MOMENT_BITS 48

/*
 * Reads a packed text into the event. For EVENT_SPAN and EVENT_BEGIN: trace_id_high, span_id,
 * sequence, thread, dropped, age_ns, ip, port and the log. For other kinds: span_id, sequence,
 * thread, age_ns, and the log of EVENT_TAG. age_ns gets the low bits of the moment: the caller
 * computes the age by moment_age(). Returns false if the text is invalid for the kind, or has
 * another version.
 */
bool packed_read(struct event *event, struct text packed);

/* Reads the packed text in event->log. On DECODED_NEWER the text stays there. */
enum decoded packed_decode(struct event *event);

/* Computes how long before `now` a moment was. Only the lower `bits` bits of the moment are known:
 * the moment nearest to `now` counts. Returns false for an impossible moment. */
bool moment_age(uint64_t now, uint64_t moment, unsigned bits, int64_t *age_ns);

/* Returns the version of the format if it is newer than the known one; else 0. */
unsigned packed_newer(struct text packed);

#endif
