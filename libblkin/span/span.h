/*
 * Inside of a recorded span: its states, and the event that it grows into.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_H
#define BLKIN_SPAN_H

#include "blkin.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/service.h"
#include "libblkin/base/thread.h"
#include "span_usage.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

/* blkin_span.state_; 0 is "not recorded". */
enum {
    SPAN_RECORDED = 1, /* as blkin:span, when it ends */
    SPAN_STREAMED = 2, /* and as blkin:begin, annotations, tags and blkin:end as they happen */
    SPAN_CHARGED = 4,  /* with what it uses */
};

/* blkin_span.has_context_; 0 is "not set". */
enum {
    CONTEXT_PASSED_ON = 1, /* another span's, or of a trace that is not recorded here */
    CONTEXT_OWN = 2,       /* of a span that is recorded, or was */
};

/* Longer texts are cut. */
#define SPAN_NAME_MAX 120
#define SPAN_TEXT_MAX 240 /* of an annotation, or a tag's value */
#define SPAN_KEY_MAX  100
#define SPAN_STEP_MAX 100 /* of a step's name */

/* Of the longest record of a log: a tag. */
#define SPAN_RECORD_MAX (5 + SPAN_KEY_MAX + SPAN_TEXT_MAX)

#define SPAN_DEPTH_MAX 12 /* steps that are open at once */

#define SPAN_KEEP_KEY "blkin.keep" /* of the tag that says why */

#define SPAN_KEEP 0x8000U /* in span.failed, as both are looked at in one: the program wants it */

/* Bytes of the event: its fixed part, the name, the head, the log. What a short name leaves is the
 * log's. Open steps may go on in the room of what comes last, until they end. */
#define SPAN_TAIL_MAX (SPAN_IP_MAX + BLKIN_TAIL_SIZE + 1 + SPAN_SERVICE_MAX + 1)
#define SPAN_USED_MAX \
    (sizeof(struct blkin_span_event) + SPAN_NAME_MAX + 1 + BLKIN_HEAD_SIZE + BLKIN_SPAN_LOG)
#define SPAN_USED_MAX_OF_STEPS (SPAN_USED_MAX + SPAN_RESERVE)
#define SPAN_RESERVE           132
#define SPAN_RESERVE_IF_CHARGED                                                    \
    (sizeof(((struct blkin_span *)0)->inside_) - sizeof(struct blkin_span_usage) - \
     offsetof(struct span, event) - SPAN_USED_MAX)

/*
 * What blkin_span.inside_ holds. The event is there from the begin, with all that does not change
 * any more; then the log grows, and the end adds the head, the duration and the service.
 */
struct span {
    uint64_t start_ns;
    uint64_t base_ns;     /* from which the times of the log count */
    uint32_t used;        /* bytes of event and strings */
    uint32_t limit;       /* of these for the usual way; 0: there is more to do */
    uint32_t step_number; /* of the step that was begun last */
    uint32_t step_logged; /* of that which the log has last */
    uint32_t sampled;
    uint32_t lost_depth; /* open steps that are dropped, within those that are not */
    uint16_t dropped;
    uint16_t unstreamed; /* of these, what a stream does not have either */
    uint16_t failed; /* bit d: an error at depth d, or below, since that was opened; SPAN_KEEP */
    uint8_t depth;   /* open steps, those but that are dropped */
    uint8_t name_length;
    uint16_t step_at[SPAN_DEPTH_MAX]; /* where in the event their records are */
    uint32_t step_numbers[SPAN_DEPTH_MAX];
    struct blkin_service service; /* its own; length 0: the process's */
    struct blkin_span_event event;
    char strings[SPAN_NAME_MAX + 1 + BLKIN_HEAD_SIZE + BLKIN_SPAN_LOG + SPAN_RESERVE];
} __attribute__((may_alias));

_Static_assert(sizeof(struct span) <= sizeof(((struct blkin_span *)0)->inside_),
               "struct blkin_span is too small");
_Static_assert(SPAN_TAIL_MAX <= SPAN_RESERVE && BLKIN_BLOCK <= SPAN_RESERVE &&
                   SPAN_TAIL_MAX <= sizeof(((struct blkin_service *)0)->text) &&
                   BLKIN_BLOCK <= sizeof(((struct blkin_service *)0)->text),
               "no room for the service");
_Static_assert(offsetof(struct span, event) + SPAN_USED_MAX + sizeof(struct blkin_span_usage) <=
                   sizeof(((struct blkin_span *)0)->inside_),
               "no room for the usage");

static inline struct span *span_inside(struct blkin_span *span)
{
    return (struct span *)(void *)span->inside_;
}

static inline const struct span *span_inside_const(const struct blkin_span *span)
{
    return (const struct span *)(const void *)span->inside_;
}

/* Of a span with SPAN_CHARGED. */
static inline struct blkin_span_usage *span_usage(struct blkin_span *span)
{
    return (struct blkin_span_usage *)(void *)((char *)span->inside_ + sizeof(span->inside_) -
                                               sizeof(struct blkin_span_usage));
}

/* The byte of the event at this offset: of its fixed part or of a string. */
static inline char *span_at(struct span *inside, size_t offset)
{
    return (char *)inside + offsetof(struct span, event) + offset;
}

/* Where the packed text begins. */
static inline char *span_head(struct span *inside)
{
    return inside->strings + inside->name_length + 1;
}

static inline bool span_is_streamed(const struct blkin_span *span)
{
    return __builtin_expect(span->state_ & SPAN_STREAMED, 0);
}

static inline uint64_t span_now_ns(void)
{
    return blkin_clock_ns(blkin_ticks());
}

/* One more that has found no room. */
static inline void span_drop_record(struct span *inside, bool is_streamed)
{
    if (inside->dropped < BLKIN_DROPPED_MAX)
        inside->dropped++;
    if (!is_streamed && inside->unstreamed < BLKIN_DROPPED_MAX)
        inside->unstreamed++;
}

/* Bytes of the event up to which there is room for open steps and what is in them. */
static inline size_t span_room_of_steps(const struct blkin_span *span)
{
    return SPAN_USED_MAX + (span->state_ & SPAN_CHARGED ? SPAN_RESERVE_IF_CHARGED : SPAN_RESERVE);
}

/* And for what is said now. */
static inline size_t span_room(const struct blkin_span *span)
{
    const struct span *inside = span_inside_const(span);

    if (inside->lost_depth)
        return 0;
    return inside->depth ? span_room_of_steps(span) : SPAN_USED_MAX;
}

static inline bool span_has_open_steps(const struct span *inside)
{
    return (inside->depth | inside->lost_depth) != 0;
}

/* ---- packed texts: see events.h ---- */

/* And the version. */
static inline char *span_put_thread(char *at, const struct blkin_thread *thread)
{
    memcpy(at, thread->digits, 8);
    memcpy(at + 3, thread->digits + 3, 8);
    return at + BLKIN_THREAD_SIZE;
}

/*
 * The head of a blkin:span or blkin:begin, of the span or of the step of it whose id this is.
 * What of it the span has is read where it is put: few registers are needed.
 */
static inline __attribute__((always_inline)) void span_put_head(bool by_pdep, char *at,
                                                                const struct blkin_span *span,
                                                                uint64_t id, uint64_t monotonic,
                                                                const struct blkin_thread *thread,
                                                                uint32_t sequence, uint16_t dropped)
{
    const struct span *inside = span_inside_const(span);

    at = span_put_thread(at, thread);
    at = blkin_put_word_by(by_pdep, at, span->context.trace_id_high);
    at = blkin_put_word_by(by_pdep, at,
                           span->context.trace_id_high >> 48 | (uint64_t)sequence << 16);
    at = blkin_put_word_by(by_pdep, at, id);
    at = blkin_put_word_by(by_pdep, at,
                           id >> 48 | (uint64_t)inside->sampled << 16 | (uint64_t)dropped << 36);
    (void)blkin_put_word_by(by_pdep, at, monotonic);
}

#endif
