/*
 * Inside of a recorded span: its states, and the event that it grows into.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_H
#define BLKIN_SPAN_H

#include "events.h"
#include "blkin.h"
#include "process.h"
#include "libblkin/put.h"

/* blkin_span.state_; 0 is "not recorded". */
enum {
    SPAN_RECORDED = 1, /* as blkin:span, when it ends */
    SPAN_STREAMED = 2, /* and as blkin:begin, annotations, tags and blkin:end as they happen */
};

/* blkin_span.has_context_; 0 is "not set". */
enum {
    CONTEXT_PASSED_ON = 1, /* another span's, or of a trace that is not recorded here */
    CONTEXT_OWN = 2,       /* of a span that is recorded, or was */
};

/* Longer texts are cut. */
#define SPAN_NAME_MAX    120
#define SPAN_TEXT_MAX    240 /* of an annotation, or a tag's value */
#define SPAN_KEY_MAX     100
#define SPAN_SERVICE_MAX 72
#define SPAN_IP_MAX      46

/* Bytes of the event: its fixed part, the name, the log. What a short name leaves is the log's. */
#define SPAN_USED_MAX (sizeof(struct blkin_span_event) + SPAN_NAME_MAX + 1 + BLKIN_SPAN_LOG)

/*
 * What blkin_span.inside_ holds. The event is there from the begin, with all that does not change
 * any more; then the log grows, and the end adds ids, times and the service.
 */
struct span {
    uint64_t start_ns;
    uint32_t used;                /* bytes of event and strings */
    uint32_t limit;               /* of these for the usual way; 0: there is more to do */
    struct blkin_service service; /* its own; length 0: the process's */
    struct blkin_span_event event;
    char strings[SPAN_NAME_MAX + 1 + BLKIN_SPAN_LOG + 1 + SPAN_SERVICE_MAX + 1 + SPAN_IP_MAX + 1 +
                 BLKIN_BLOCK];
} __attribute__((may_alias));

_Static_assert(sizeof(struct span) <= sizeof(((struct blkin_span *)0)->inside_),
               "struct blkin_span is too small");

static inline struct span *span_inside(struct blkin_span *span)
{
    return (struct span *)(void *)span->inside_;
}

static inline const struct span *span_inside_const(const struct blkin_span *span)
{
    return (const struct span *)(const void *)span->inside_;
}

static inline bool span_is_streamed(const struct blkin_span *span)
{
    return __builtin_expect(span->state_ & SPAN_STREAMED, 0);
}

static inline uint64_t span_now_ns(void)
{
    return blkin_clock_ns(blkin_ticks());
}

/*
 * Records a streaming event of the span, if it is enabled: what happened at time_ns, with a text of
 * at most SPAN_RECORD_MAX bytes, or none (NULL).
 */
void blkin_stream(const struct blkin_span *span, enum blkin_packed_event kind, uint64_t time_ns,
                  const char *text, size_t length);

/* Of the longest record of a log: a tag. */
#define SPAN_RECORD_MAX (5 + SPAN_KEY_MAX + SPAN_TEXT_MAX)

#endif
