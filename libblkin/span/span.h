/*
 * The inside of a recorded span: its states, and the event that it becomes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_H
#define BLKIN_SPAN_H

#include "blkin.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/base/service.h"
#include "libblkin/base/thread.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

#define HOT inline __attribute__((always_inline))

/* blkin_span.state_; 0: not recorded. */
enum {
    SPAN_RECORDED = 1, /* as blkin:span, at its end */
    SPAN_STREAMED = 2, /* also as streaming events: blkin:begin, annotations, tags, blkin:end */
    SPAN_CHARGED = 4,  /* with its usage */
    SPAN_MOVED = 8,    /* the log begins with the distance of the start from its base */
};

/* blkin_span.has_context_; 0: not set. */
enum {
    CONTEXT_PASSED_ON = 1, /* of another span, or of a trace that is not recorded here */
    CONTEXT_OWN = 2,       /* of a span that is or was recorded */
};

/* Longer texts are cut. */
#define SPAN_NAME_MAX 120
#define SPAN_TEXT_MAX 240 /* of an annotation, or a tag's value */
#define SPAN_KEY_MAX  100
#define SPAN_STEP_MAX 100 /* of a step's name */

/* The longest record of a log is a tag. */
#define SPAN_RECORD_MAX (5 + SPAN_KEY_MAX + SPAN_TEXT_MAX)

#define SPAN_DEPTH_MAX 12 /* steps that are open at once */

#define SPAN_KEEP_KEY "blkin.keep" /* the key of the tag with the reason */

/* span.failed: one field, so that a fast path tests it once. */
#define SPAN_FAILED      0x1fffU
#define SPAN_LOST_STEP   0x2000U /* the innermost open step is dropped */
#define SPAN_OWN_SERVICE 0x4000U /* the span has its own service */
#define SPAN_KEEP        0x8000U /* the program wants to keep the span */

/* The library uses at most so many bytes of a span, including the header. */
#define SPAN_SIZE_MAX 2048

/* ---- the usage of a span: usage/ fills it in ---- */

/* Meter readings, or differences of them. */
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

/* At the very end of a span with SPAN_CHARGED, behind the log. */
struct blkin_span_usage {
    struct blkin_usage amount; /* free at the begin; once the span was current: the amount so far */
    uintptr_t holder;          /* the thread whose current span this is; 0: none; 1: lost */
    uint32_t generation;       /* blkin_usage_state at the begin */
    uint8_t level;             /* the least level of its readings */
    bool was_current;
};

/* ---- a span that is recorded ---- */

/*
 * The content of a recorded struct blkin_span: the header, which the ABI knows up to `size`; the
 * name and NUL; a gap; the log, which grows; free room; and from `end` on an own service and the
 * usage, which few spans have.
 *
 * A usual span becomes its event in place. The fixed part of the event replaces the fields from
 * `end` to `flags`, directly before the name; the packed head goes into the gap. So a span without
 * annotations and tags touches three cache lines. Children read their parent's fields before `end`
 * even after its end.
 */
struct span_fields {
    char of_abi[offsetof(struct blkin_span, inside_)];
    uint16_t size;    /* of the span's memory */
    uint32_t sampled; /* in millionths; 0: not known */
    uint16_t end;     /* end of the room for the log */
    int16_t limit;    /* of `used`, for the fast path; negative: SPAN_SLOW */
    uint16_t used;    /* end of the log */
    uint16_t failed;  /* bit d: an error since depth d was opened, there or below; SPAN_... */
    uint64_t base_ns; /* base of the log's times: the start, but see SPAN_MOVED */
    uint16_t dropped;
    uint8_t depth; /* open steps that are not dropped */
    uint8_t name_length;
    uint32_t next_step; /* number of the next step; 0: the span never had one */
    uint8_t kind;
    uint8_t flags; /* BLKIN_SPAN_* */
    char name[];
} __attribute__((may_alias));

/* In the gap: fields of the slow paths. */
struct span_rest {
    uint16_t unstreamed; /* if streamed: dropped records that the stream does not have */
    /* valid once the span has had a step: */
    uint8_t reserve;      /* bytes before `end` that are for steps only */
    uint8_t is_cut;       /* the last begun step is not in the log */
    uint32_t lost_depth;  /* dropped open steps, all within those that are not dropped */
    uint16_t walk_at;     /* where a walk may begin, with no step open; 0: unknown */
    uint32_t walk_number; /* number of the last step before walk_at */
} __attribute__((packed, may_alias));

/* Any record on top of this limit keeps it negative: the slow path. */
#define SPAN_SLOW (-SPAN_SIZE_MAX)

#define SPAN_EVENT_AT offsetof(struct span_fields, end)

/* The offset of the log in a span without a name. */
#define SPAN_LOG_AT (offsetof(struct span_fields, name) + 1 + BLKIN_HEAD_SIZE)

/* A smaller span takes the slow path; any name fits into others. */
#define SPAN_SIZE_USUAL (SPAN_LOG_AT + SPAN_NAME_MAX)

/* A smaller span has no usage. */
#define SPAN_SIZE_CHARGED (SPAN_SIZE_USUAL + sizeof(struct blkin_span_usage))

/* The reserve for steps that find the log full: a quarter of the room that is left at the first
 * step, at most this. */
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

/* Returns the span's own service, or NULL. */
static inline const struct blkin_service *span_own_service(const struct span_fields *inside)
{
    return inside->failed & SPAN_OWN_SERVICE
               ? (const struct blkin_service *)(const void *)((const char *)inside + inside->end)
               : NULL;
}

/* Returns the start of the span. */
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

/* Counts a record without room. is_told: the stream of a streamed span has it. */
static inline void span_drop_record(struct blkin_span *span, bool is_told)
{
    struct span_fields *inside = span_inside(span);

    if (inside->dropped < BLKIN_DROPPED_MAX)
        inside->dropped++;
    if (!is_told && span_is_streamed(span) && span_rest(inside)->unstreamed < BLKIN_DROPPED_MAX)
        span_rest(inside)->unstreamed++;
}

/* Returns the end of the room for everything but open steps. */
static inline size_t span_room_of_log(const struct span_fields *inside)
{
    return inside->end - (inside->next_step ? span_rest(inside)->reserve : 0U);
}

/* Returns the end of the room for the current record. */
static inline size_t span_room(const struct span_fields *inside)
{
    if (inside->failed & SPAN_LOST_STEP)
        return 0;
    return inside->depth ? inside->end : span_room_of_log(inside);
}

/* The test of the fast path. size: of a few records at most. */
static inline bool span_has_room(const struct span_fields *inside, size_t size)
{
    return __builtin_expect(inside->used + (int)size <= inside->limit, 1);
}

/* ---- packed texts: see events.h ---- */

/* Also puts the version. */
static inline char *span_put_thread(char *at, const struct blkin_thread *thread)
{
    memcpy(at, thread->digits, 8);
    memcpy(at + 3, thread->digits + 3, 8);
    return at + BLKIN_HEAD_BEGIN_SIZE;
}

/* Puts the head of a blkin:span or blkin:begin event. id: of the span, or of a step. The function
 * reads fields of the span where it needs them, so that it uses few registers. */
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

/* The log is the only record of the open steps: their numbers are found by a walk. */
/* Returns the size of the record at this place: see events.h. */
size_t blkin_record_size(const char *at);

/* An open step of the walk. */
struct walk_step {
    const char *first; /* its first record: its number if it has one */
    const char *begin; /* its begin */
    uint32_t number;
};

struct log_walk {
    const char *at;
    const char *end;
    uint32_t number; /* of the last step */
    unsigned depth;
    struct walk_step open[SPAN_DEPTH_MAX];
};

/* Starts at the begin of the log. */
void blkin_walk_begin(struct log_walk *walk, const struct span_fields *inside);

/* Goes to the next end of a step, which is open[depth], and returns that record. NULL: end of the
 * log; the steps below `depth` are open. */
const char *blkin_walk(struct log_walk *walk);

/* ---- the open steps: step.c ---- */

/* Returns the id of the innermost open step, or the span's own. */
uint64_t blkin_open_id(const struct blkin_span *span);
/* Returns the id of the open step at this depth; depth 0: the span's own. */
uint64_t blkin_id_at(const struct blkin_span *span, unsigned depth);

/* Ends the open steps of a span that ends. A dropped span only tells its stream. */
void blkin_end_steps(struct blkin_span *span, uint64_t end_ns, bool is_recorded);

/* ---- the streaming events, for programs that hang or crash: span_log.c ---- */

/* Records a streaming event if it is enabled. id: of the span or of a step. text: at most
 * SPAN_RECORD_MAX bytes, or NULL. */
void blkin_stream(const struct blkin_span *span, uint64_t id, enum blkin_packed_event kind,
                  uint64_t time_ns, const char *text, size_t length);

/* The begin of a span or step. name: at most SPAN_NAME_MAX bytes. */
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

/* Tells the stream before the span's end how many records it lacks. */
void blkin_stream_dropped(const struct blkin_span *span, uint64_t end_ns);

/* ---- the slow part of a recorded span: slow_span.c ---- */

/* Checks a span that was just recorded, or a step with an event of its own. */
void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns);
void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns);

/*
 * ---- BLKIN_DEBUG=check: reports each misuse of a span once per place ----
 *
 * Only recorded spans are checked. While checks are on, every begin takes the slow path, every span
 * has the limit SPAN_SLOW, and a span that has ended keeps a state: so all calls come here. While
 * checks are off, the slow paths test one byte.
 */

enum check_call { CHECK_USE, CHECK_END, CHECK_STEP_BEGIN, CHECK_STEP_END };

__attribute__((cold)) void blkin_check_begun(const struct blkin_span *span);

/* True: the call is a misuse and was reported. Do nothing. */
__attribute__((cold)) bool blkin_check_refuses(const struct blkin_span *span, enum check_call call);

static inline bool blkin_is_misuse(const struct blkin_span *span, enum check_call call)
{
    return __builtin_expect(blkin_checks, 0) && blkin_check_refuses(span, call);
}

/* ---- begin with a known id: blkin.c ---- */

/* Like blkin_span_begin_remote(), for a span of `size` bytes. id 0: a new one. */
__attribute__((visibility("hidden"))) void
blkin_begin_with_id(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                    uint32_t kind, const struct blkin_context *context, uint64_t id);

#endif
