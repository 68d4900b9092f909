/*
 * The decoded event: the seam between what reads traces and what assembles spans.
 *
 * A plain struct, so that the core is driven in tests without a trace or a daemon. Everything in it
 * comes from a trace and is untrusted: any value, any bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_EVENT_H
#define BLKIN_CORE_EVENT_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

enum event_kind {
    /* the original's; a span has no end of its own */
    EVENT_TIMESTAMP,      /* zipkin:timestamp: value is the annotation */
    EVENT_KEYVAL_TEXT,    /* zipkin:keyval_string, and zipkin:keyval of the oldest library */
    EVENT_KEYVAL_INTEGER, /* zipkin:keyval_integer */
    /* those of the span API: doc/format.md tells what is in them */
    EVENT_SPAN,       /* blkin:span: all of a span */
    EVENT_BEGIN,      /* blkin:begin */
    EVENT_ANNOTATION, /* blkin:annotation_*: value is the annotation */
    EVENT_TAG,        /* blkin:tag: log has one record */
    EVENT_END,        /* blkin:end */
    EVENT_PROCESS,    /* blkin:process */
    EVENT_METRIC,     /* blkin:metric: of a host, about no span */
    EVENT_RULE,       /* of another provider, named by a rule: see rules/pairing.h */
};

/* Where an event was recorded, as far as the trace tells. */
struct origin {
    struct text host;    /* of the trace; empty: not known */
    int64_t clock;       /* offset of the trace's clock: tells sessions of one host apart */
    struct text process; /* procname context; empty: not known */
    int64_t pid;         /* vpid context; 0: not known */
    int64_t tid;         /* vtid context; 0: not known */
    uint64_t pid_ns;     /* pid_ns context: the pid namespace; 0: not known */
};

/* Which process of its host: in two containers, two have the same pid. 0: not known. */
static inline uint64_t origin_process(const struct origin *origin)
{
    return origin->pid_ns << 32 | (uint32_t)origin->pid;
}

static inline int64_t process_pid(uint64_t process)
{
    return (int32_t)process;
}

/* What an event tells of comes after it by no more than this, which is the error of two clocks. */
#define EVENT_AHEAD_NS INT64_C(1000000)

struct rule_event;

/* All texts are borrowed for the length of one call. Of two names the second is EVENT_METRIC's. */
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
        struct text instance; /* of the group; empty: there is but one */
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
        struct text values; /* unsigned numbers, as decimals with blanks between */
    };
    union {
        int64_t integer;    /* of EVENT_KEYVAL_INTEGER */
        uint64_t period_ms; /* that the group is read at */
    };

    /* of the span API's events */
    union {
        struct text log;
        struct text names; /* NAME:UNIT:KIND with blanks between; empty: as they were */
    };
    uint64_t duration_ns;
    int64_t age_ns;     /* what it tells of happened so long before time_ns, or just after */
    uint64_t thread;    /* number of the recording thread */
    uint64_t sequence;  /* of that thread's events */
    uint64_t span_kind; /* enum blkin_kind */
    uint64_t flags;     /* BLKIN_SPAN_* */
    uint64_t dropped;   /* annotations, tags and steps that found no room in the program */
    uint64_t realtime;  /* of EVENT_PROCESS: wall clock, ns since the Unix epoch */

    bool is_cut; /* of the original's: a text of it is only the beginning of a longer one */

    /* of EVENT_RULE. NULL: its fields are in log, and trace_id says of which rules they are */
    struct rule_event *ruled;
};

/* A metric's texts, of which none is recorded as empty. */
static inline void event_hide_dashes(struct event *event)
{
    if (text_is(event->instance, "-"))
        event->instance.length = 0;
    if (text_is(event->names, "-"))
        event->names.length = 0;
}

/* What a source makes of something that it has read. */
enum decoded {
    DECODED,
    DECODED_FOREIGN,    /* not an event of ours */
    DECODED_ALARM,      /* blkin:slow: ours, and about no span */
    DECODED_UNWANTED,   /* of a trace, or a time, that only does not name */
    DECODED_UNREADABLE, /* ours by name, but a field is missing, or not as it should be */
    DECODED_NEWER,      /* ours, of a version of the format that is not known yet */
    DECODED_NO_MEMORY,
};

#endif
