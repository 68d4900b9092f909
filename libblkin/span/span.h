/*
 * The content of a recorded span: its states, and the event that it becomes.
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
    SPAN_MOVED = 8,    /* the log begins with a record: base_ns minus the span's start */
};

/* blkin_span.has_context_; 0: not set. */
enum {
    CONTEXT_PASSED_ON = 1, /* that of another span, or of a trace that is not recorded here */
    CONTEXT_OWN = 2,       /* that of this span, which is or was recorded */
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

/* Bits of span_fields.failed, in one field so that a fast path needs one test. */
#define SPAN_FAILED      0x1fffU /* see the field */
#define SPAN_LOST_STEP   0x2000U /* the innermost open step is dropped */
#define SPAN_OWN_SERVICE 0x4000U /* the span has its own service */
#define SPAN_KEEP        0x8000U /* the program wants to keep the span */

/* The library uses at most this number of bytes of a span's memory. */
#define SPAN_SIZE_MAX 2048

/* ---- the usage of a span: usage/ fills it in ---- */

/* Readings of the meters, or differences of readings. */
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

/* The last bytes of a span with SPAN_CHARGED. */
struct blkin_span_usage {
    /* the "free" reading at the begin; if was_current: the usage so far */
    struct blkin_usage amount;
    uintptr_t holder;    /* the thread whose current span this is; 0: none; 1: unknown usage */
    uint32_t generation; /* blkin_usage_state at the begin */
    uint8_t level;       /* the least level of its readings */
    bool was_current;
};

/* ---- a span that is recorded ---- */

/*
 * The content of a recorded struct blkin_span: this struct, whose fields before `size` belong to
 * the ABI; the name and NUL; a gap; the log, which grows; free room; and from `end` on the span's
 * own service and the usage, which few spans have.
 *
 * A usual span is turned into its event in place. The fixed part of the event replaces the fields
 * from `end` to `flags`, directly before the name. The packed head is written into the gap. So a
 * span without annotations and tags uses three cache lines. Children read the fields before `end`,
 * even after the parent's end.
 */
struct span_fields {
    char of_abi[offsetof(struct blkin_span, inside_)];
    uint16_t size;    /* of the span's memory */
    uint32_t sampled; /* the sampled share in millionths; 0: not known */
    uint16_t end;     /* offset: end of the room for the log */
    int16_t limit;    /* the largest `used` on the fast path; negative: SPAN_SLOW */
    uint16_t used;    /* offset: end of the log */
    uint16_t failed;  /* bit d: an error in the open step at depth d (0: the span), or below it;
                         SPAN_... */
    uint64_t base_ns; /* base of the log's times: the span's start, unless SPAN_MOVED */
    uint16_t dropped; /* number of dropped records */
    uint8_t depth;    /* number of open steps that are not dropped */
    uint8_t name_length;
    uint32_t next_step; /* number of the next step; 0: the span has had no step */
    uint8_t kind;
    uint8_t flags; /* BLKIN_SPAN_* */
    char name[];
} __attribute__((may_alias));

/* Fields of the slow paths, in the gap. */
struct span_rest {
    uint16_t unstreamed; /* of a streamed span: number of dropped records that are not streamed */
    /* valid if the span has had a step: */
    uint8_t reserve;      /* bytes before `end` that only open steps may use */
    uint8_t is_cut;       /* the last begun step was cut off the log */
    uint32_t lost_depth;  /* number of dropped open steps, all inside those that are not dropped */
    uint16_t walk_at;     /* offset where a walk may begin, outside of all steps; 0: unknown */
    uint32_t walk_number; /* number of the last step before walk_at */
} __attribute__((packed, may_alias));

/* A limit that no record fits, so all calls take the slow path. The limit stays negative when
 * take_room_before_end() changes the limit. */
#define SPAN_SLOW (-SPAN_SIZE_MAX)

#define SPAN_EVENT_AT offsetof(struct span_fields, end)

/* The offset of the log in a span without a name. */
#define SPAN_LOG_AT (offsetof(struct span_fields, name) + 1 + BLKIN_HEAD_SIZE)

/* A smaller span takes the slow path. Any name fits into a span of this size. */
#define SPAN_SIZE_USUAL (SPAN_LOG_AT + SPAN_NAME_MAX)

/* A smaller span has no usage. */
#define SPAN_SIZE_CHARGED (SPAN_SIZE_USUAL + sizeof(struct blkin_span_usage))

/* The largest reserve for steps that find the log full. The reserve is a quarter of the room that
 * is left at the first step. */
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

/* Returns the usage of a span with SPAN_CHARGED. */
static inline struct blkin_span_usage *span_usage(struct blkin_span *span)
{
    return (struct blkin_span_usage *)(void *)((char *)span + span_inside(span)->size -
                                               sizeof(struct blkin_span_usage));
}

static inline char *span_at(struct span_fields *inside, size_t offset)
{
    return (char *)inside + offset;
}

/* Returns the offset of the log. */
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

/* Counts a record without room. is_in_stream: the record is streamed, or will be. */
static inline void span_drop_record(struct blkin_span *span, bool is_in_stream)
{
    struct span_fields *inside = span_inside(span);

    if (inside->dropped < BLKIN_DROPPED_MAX)
        inside->dropped++;
    if (!is_in_stream && span_is_streamed(span) &&
        span_rest(inside)->unstreamed < BLKIN_DROPPED_MAX)
        span_rest(inside)->unstreamed++;
}

/* Returns the end of the room for the log without the reserve. */
static inline size_t span_room_of_log(const struct span_fields *inside)
{
    return inside->end - (inside->next_step ? span_rest(inside)->reserve : 0U);
}

/* Returns the end of the room for the next record, which may use the reserve if a step is open. */
static inline size_t span_room(const struct span_fields *inside)
{
    if (inside->failed & SPAN_LOST_STEP)
        return 0;
    return inside->depth ? inside->end : span_room_of_log(inside);
}

/* Returns true if a record of this size has room on the fast path. */
static inline bool span_has_room(const struct span_fields *inside, size_t size)
{
    return __builtin_expect(inside->used + (int)size <= inside->limit, 1);
}

/* ---- packed texts: see events.h ---- */

/* Puts version and thread. */
static inline char *span_put_thread(char *at, const struct blkin_thread *thread)
{
    memcpy(at, thread->digits, 8);
    memcpy(at + 3, thread->digits + 3, 8);
    return at + BLKIN_THREAD_SIZE;
}

/* Puts the head of a blkin:span or blkin:begin event. id: that of the span, or of a step. Reads
 * each field of the span just before use, so that few registers are needed. */
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

/* ---- a walk over the log, which finds the numbers of the open steps: step.c ---- */

/* Returns the size of the record at this address. */
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

/* Begins a walk at the first record of the log. */
void blkin_walk_begin(struct log_walk *walk, const struct span_fields *inside);

/* Goes to the next record that ends a step, and returns that record. The step is open[depth]. NULL:
 * the end of the log; open[0] to open[depth - 1] are still open. */
const char *blkin_walk_to_end(struct log_walk *walk);

/* ---- the open steps: step.c ---- */

/* Returns the id of the innermost open step, or the span's own. */
uint64_t blkin_open_id(const struct blkin_span *span);
/* Returns the id of the open step at this depth; depth 0: the span's own. */
uint64_t blkin_id_at(const struct blkin_span *span, unsigned depth);

/* Ends the open steps of a span that ends. is_recorded false: the span is dropped, and its steps
 * only have streaming events. */
void blkin_end_steps(struct blkin_span *span, uint64_t end_ns, bool is_recorded);

/* ---- the streaming events, for programs that hang or crash: span_log.c ---- */

/* Records a streaming event if it is enabled. id: that of the span or of a step. text: at most
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

/* Streams, before the span's end, the number of records that are not streamed. */
void blkin_stream_dropped(const struct blkin_span *span, uint64_t end_ns);

/* ---- the slow part of a recorded span: slow_span.c ---- */

/* Checks a span that was just recorded, or a step with an event of its own. */
void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns);
void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns);

/*
 * ---- BLKIN_DEBUG=check: reports each misuse of a span once for each caller ----
 *
 * Only recorded spans are checked. While checks are on, each begin takes the slow path, each span
 * has the limit SPAN_SLOW, and state_ of an ended span is not 0: so all calls reach the checks.
 * While checks are off, the slow paths test one byte.
 */

enum check_call { CHECK_USE, CHECK_END, CHECK_STEP_BEGIN, CHECK_STEP_END };

__attribute__((cold)) void blkin_check_begun(const struct blkin_span *span);

/* Returns true if the call is a misuse: it is reported, and the caller does nothing else. */
__attribute__((cold)) bool blkin_check_refuses(const struct blkin_span *span, enum check_call call);

static inline bool blkin_is_misuse(const struct blkin_span *span, enum check_call call)
{
    return __builtin_expect(blkin_checks, 0) && blkin_check_refuses(span, call);
}

/* ---- begin with a known id: blkin.c ---- */

/* Like blkin_span_begin_remote(), for a span of `size` bytes. id: the span's id; 0: a new one. */
__attribute__((visibility("hidden"))) void
blkin_begin_with_id(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                    uint32_t kind, const struct blkin_context *context, uint64_t id);

#endif
