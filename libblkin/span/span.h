/*
 * Inside of a recorded span: its states, and the event that it grows into.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_H
#define BLKIN_SPAN_H

#include "blkin.h"
#include "libblkin/base/chores.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/base/service.h"
#include "libblkin/base/thread.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

/* blkin_span.state_; 0 is "not recorded". */
enum {
    SPAN_RECORDED = 1, /* as blkin:span, when it ends */
    SPAN_STREAMED = 2, /* and as blkin:begin, annotations, tags and blkin:end as they happen */
    SPAN_CHARGED = 4,  /* with what it uses */
    SPAN_MOVED = 8,    /* the log says first of all how long before or after its base it began */
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

/* In span.failed, as all of it is looked at in one. */
#define SPAN_FAILED      0x1fffU
#define SPAN_LOST_STEP   0x2000U /* a step is open that is dropped */
#define SPAN_OWN_SERVICE 0x4000U /* it has one */
#define SPAN_KEEP        0x8000U /* the program wants it */

/* The most bytes of a span, with its header, that the library uses, even if the room is larger. */
#define SPAN_SIZE_MAX 2048

/* ---- what a span keeps of its usage: usage/ fills it in, a span has the room for it ---- */

/* Readings, or differences of them. */
enum blkin_usage_time { USAGE_WALL, USAGE_CPU, USAGE_RUN_DELAY, USAGE_TIMES };
enum blkin_usage_count {
    USAGE_SWITCHES,
    USAGE_PREEMPTIONS,
    USAGE_FAULTS,
    USAGE_MAJOR_FAULTS,
    USAGE_DIRTIED, /* in units of 512 bytes */
    USAGE_COUNTS
};

struct blkin_usage {
    uint64_t ns[USAGE_TIMES];
    uint32_t counts[USAGE_COUNTS];
};

/* What a span with SPAN_CHARGED has at its very end, where the log does not come. */
struct blkin_span_usage {
    struct blkin_usage amount; /* free at its begin; once it was current: charged so far */
    uintptr_t holder;    /* the thread that charges it as its current span; 0: none; 1: lost */
    uint32_t generation; /* blkin_usage_state at its begin */
    uint8_t level;       /* that all its readings had */
    bool was_current;
};

/* ---- a span that is recorded ---- */

/*
 * What a struct blkin_span holds while it is recorded: the header, which the ABI knows up to
 * `size`; the name and its NUL; a gap; the log, which grows; free room; and from `end` on what few
 * spans have: a service of the span's own, its usage.
 *
 * The end of a usual span makes the event in place: its fixed part goes where the fields from `end`
 * to `flags` were, right before the name, and its head into the gap. So a span without annotations
 * and tags touches three cache lines. Children look at their parent after its end, too: at what is
 * before `end`.
 */
struct span_fields {
    char of_abi[offsetof(struct blkin_span, inside_)];
    uint16_t size;    /* of all of it */
    uint32_t sampled; /* in millionths; 0: not known */
    uint16_t end;     /* of the room for the log */
    int16_t limit;    /* of `used`, for the fast path; negative: SPAN_SLOW */
    uint16_t used;    /* where the log ends */
    uint16_t failed;  /* bit d: an error at depth d, or below, since that was opened; SPAN_... */
    uint64_t base_ns; /* from which the times of the log count: its start, but see SPAN_MOVED */
    uint16_t dropped;
    uint8_t depth; /* open steps that are not dropped */
    uint8_t name_length;
    uint32_t next_step; /* its number; 0: the span never had a step */
    uint8_t kind;
    uint8_t flags; /* BLKIN_SPAN_* */
    char name[];
} __attribute__((may_alias));

/* In the gap: what only the slow paths need. */
struct span_rest {
    uint16_t unstreamed; /* of a streamed span: dropped records that the stream does not have */
    /* once the span has had a step: */
    uint8_t reserve;      /* bytes before `end` that are for steps only */
    uint8_t is_cut;       /* the log does not have the step that was begun last */
    uint32_t lost_depth;  /* open steps that are dropped, within those that are not */
    uint16_t walk_at;     /* where a walk may begin: no step was open there; 0: not known */
    uint32_t walk_number; /* of the last step before that */
} __attribute__((packed, may_alias));

/* A limit for the slow path: whatever is added to it, it stays negative. */
#define SPAN_SLOW (-SPAN_SIZE_MAX)

#define SPAN_EVENT_AT offsetof(struct span_fields, end)

/* Where the log of a span without a name begins. */
#define SPAN_LOG_AT (offsetof(struct span_fields, name) + 1 + BLKIN_HEAD_SIZE)

/* A span of fewer bytes takes the slow path: any name fits others. */
#define SPAN_SIZE_USUAL (SPAN_LOG_AT + SPAN_NAME_MAX)

/* Of fewer bytes: no usage. */
#define SPAN_SIZE_CHARGED (SPAN_SIZE_USUAL + sizeof(struct blkin_span_usage))

/* Open steps that find no room in the log go on in a quarter of what is left when a span's first
 * step begins, or in this. */
#define SPAN_RESERVE_MAX 128

_Static_assert(offsetof(struct span_fields, sampled) == 52 && sizeof(struct blkin_span) == 640 &&
                   offsetof(struct blkin_span, room_) == 64,
               "the layout is another one than the ABI's");
_Static_assert(offsetof(struct span_fields, name) ==
                       SPAN_EVENT_AT + sizeof(struct blkin_span_event) &&
                   sizeof(struct span_rest) <= BLKIN_HEAD_SIZE,
               "the event cannot be made in place");
_Static_assert(SPAN_LOG_AT < BLKIN_SPAN_SIZE_MIN &&
                   SPAN_SIZE_USUAL + BLKIN_SPAN_LOG <= BLKIN_SPAN_SIZE,
               "sizes do not fit");

static inline struct span_fields *span_inside(struct blkin_span *span)
{
    return (struct span_fields *)(void *)span;
}

static inline const struct span_fields *span_inside_const(const struct blkin_span *span)
{
    return (const struct span_fields *)(const void *)span;
}

/* Of a span with SPAN_CHARGED. */
static inline struct blkin_span_usage *span_usage(struct blkin_span *span)
{
    return (struct blkin_span_usage *)(void *)((char *)span + span_inside(span)->size -
                                               sizeof(struct blkin_span_usage));
}

static inline char *span_at(struct span_fields *inside, size_t offset)
{
    return (char *)inside + offset;
}

/* Where the log begins. */
static inline size_t span_log_at(const struct span_fields *inside)
{
    return SPAN_LOG_AT + inside->name_length;
}

static inline struct span_rest *span_rest(const struct span_fields *inside)
{
    return (struct span_rest *)(uintptr_t)(inside->name + inside->name_length + 1);
}

/* Its own service, or NULL. */
static inline const struct blkin_service *span_own_service(const struct span_fields *inside)
{
    return inside->failed & SPAN_OWN_SERVICE
               ? (const struct blkin_service *)(const void *)((const char *)inside + inside->end)
               : NULL;
}

/* When it began. */
static inline uint64_t span_start_ns(const struct blkin_span *span)
{
    const struct span_fields *inside = span_inside_const(span);
    uint64_t before;

    if (!(span->state_ & SPAN_MOVED))
        return inside->base_ns;
    before = blkin_number_at((const char *)inside + span_log_at(inside) + 1, 8);
    return inside->base_ns - (uint64_t)((int64_t)(before << 16) >> 16);
}

static inline bool span_is_streamed(const struct blkin_span *span)
{
    return __builtin_expect(span->state_ & SPAN_STREAMED, 0);
}

static inline uint64_t span_now_ns(void)
{
    return blkin_clock_ns(blkin_ticks());
}

/* One more record has found no room. is_told: if the span is streamed, the stream has it. */
static inline void span_drop_record(struct blkin_span *span, bool is_told)
{
    struct span_fields *inside = span_inside(span);

    if (inside->dropped < BLKIN_DROPPED_MAX)
        inside->dropped++;
    if (!is_told && span_is_streamed(span) && span_rest(inside)->unstreamed < BLKIN_DROPPED_MAX)
        span_rest(inside)->unstreamed++;
}

/* Where the log must end, but for open steps and what is in them. */
static inline size_t span_room_of_log(const struct span_fields *inside)
{
    return inside->end - (inside->next_step ? span_rest(inside)->reserve : 0U);
}

/* Where the log must end with what is said now. */
static inline size_t span_room(const struct span_fields *inside)
{
    if (inside->failed & SPAN_LOST_STEP)
        return 0;
    return inside->depth ? inside->end : span_room_of_log(inside);
}

/* For the fast path. size: at most of a few records. */
static inline bool span_has_room(const struct span_fields *inside, size_t size)
{
    return __builtin_expect(inside->used + (int)size <= inside->limit, 1);
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
    const struct span_fields *inside = span_inside_const(span);

    at = span_put_thread(at, thread);
    at = blkin_put_word_by(by_pdep, at, span->context.trace_id_high);
    at = blkin_put_word_by(by_pdep, at,
                           span->context.trace_id_high >> 48 | (uint64_t)sequence << 16);
    at = blkin_put_word_by(by_pdep, at, id);
    at = blkin_put_word_by(by_pdep, at,
                           id >> 48 | (uint64_t)inside->sampled << 16 | (uint64_t)dropped << 36);
    (void)blkin_put_word_by(by_pdep, at, monotonic);
}

/* ---- a walk over the log: its records and its steps: step.c ---- */

/*
 * The log is all that is known of the steps that are open: who wants their numbers walks.
 */
/* Of the record that is here, if it is one: see events.h. */
size_t blkin_record_size(const char *at);

/* A step that is open where the walk has come to. */
struct walk_step {
    const char *first; /* its records: that of its number, if it has one, ... */
    const char *begin; /* ... and its begin */
    uint32_t number;
};

struct walk {
    const char *at;
    const char *end;
    uint32_t number; /* of the last step */
    unsigned depth;
    struct walk_step open[SPAN_DEPTH_MAX];
};

/* From the log's begin. */
void blkin_walk_begin(struct walk *walk, const struct span_fields *inside);

/*
 * To the next step that ends: it is open[depth]. Returns the record of its end; NULL where the log
 * ends: the steps below `depth` are still open.
 */
const char *blkin_walk(struct walk *walk);

/* ---- the open steps: step.c ---- */

/* The id of the innermost open step, or the span's own. */
uint64_t blkin_open_id(const struct blkin_span *span);
/* Of the step that is open at this depth; 0: of the span. */
uint64_t blkin_id_at(const struct blkin_span *span, unsigned depth);

/* Ends the open steps of a span that ends; if it is dropped, for those only who read the stream. */
void blkin_end_steps(struct blkin_span *span, uint64_t end_ns, bool is_recorded);

/* ---- the streaming events, for programs that hang or crash: span_log.c ---- */

/*
 * Records a streaming event, if it is enabled: what happened at time_ns to the span or the step of
 * it whose id this is, with a text of at most SPAN_RECORD_MAX bytes, or none (NULL).
 */
void blkin_stream(const struct blkin_span *span, uint64_t id, enum blkin_packed_event kind,
                  uint64_t time_ns, const char *text, size_t length);

/* The begin of the span, or of a step of it: name is of at most SPAN_NAME_MAX bytes. */
struct stream_begin {
    uint64_t id;
    uint64_t parent_id;
    uint64_t time_ns;
    const char *name;
    size_t name_length;
    uint8_t flags;
    uint8_t kind;
};

void blkin_stream_begin(const struct blkin_span *span, const struct stream_begin *begin);

/* Says before a streamed span's end how much the stream does not have. */
void blkin_stream_dropped(const struct blkin_span *span, uint64_t end_ns);

/* ---- which part of a recorded span is slow: slow_span.c ---- */

/* Looks at a span that has been recorded just now, or at a step of it in an event of its own. */
void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns);
void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns);

/*
 * ---- BLKIN_DEBUG=check: misuse of spans, each told once per place with the caller's address ----
 *
 * Recorded spans alone are checked. While checks are on, every begin takes the slow path, every
 * span is told so by a limit of 0, and a span that has ended keeps a state, so that calls on it
 * come here. Off, the slow paths test one byte for it.
 */

enum check_call { CHECK_USE, CHECK_END, CHECK_STEP_BEGIN, CHECK_STEP_END };

__attribute__((cold)) void blkin_check_begun(const struct blkin_span *span);

/* The call is a misuse, and has been told: do nothing. */
__attribute__((cold)) bool blkin_check_refuses(const struct blkin_span *span, enum check_call call);

static inline bool blkin_is_misuse(const struct blkin_span *span, enum check_call call)
{
    return __builtin_expect(blkin_checks, 0) && blkin_check_refuses(span, call);
}

/* ---- the begin of a span whose id may be known already: blkin.c ---- */

/* As blkin_span_begin_remote() begins it, in so many bytes; id 0: a new one. */
__attribute__((visibility("hidden"))) void
blkin_begin_with_id(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                    uint32_t kind, const struct blkin_context *context, uint64_t id);

#endif
