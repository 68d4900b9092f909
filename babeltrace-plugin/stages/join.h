/*
 * Joining: the two halves of a request between programs that send each other no ids. Finished
 * spans pass through here behind the assembler.
 *
 * Both halves have a tag of the same key (tracepoints/format/join.h). The server's begins a trace
 * of its own, whose id is marked; all spans of such a trace are held until the client is known.
 * A client's span of the same key during which the server's began is its parent, and the trace gets
 * the client's trace id: if that one is held itself, when it is known whose that is, so that a
 * chain of programs becomes one trace, in which each span is renamed once. Where no client's half
 * comes, or more than one could be it, the trace is given out as it is. Spans of other traces are
 * never held.
 *
 * Which half comes first does not matter. Two that fit are looked at again JOIN_SETTLE_NS later,
 * when whatever else was recorded at that time has come too.
 *
 * Time is trace time. Nothing that decides depends on seeds or addresses: the same trace read again
 * is joined alike. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_JOIN_H
#define BLKIN_CORE_JOIN_H

#include "tracepoints/format/join.h"

#include "babeltrace-plugin/spans/span.h"
#include "babeltrace-plugin/spans/state.h"

#define JOIN_SETTLE_NS INT64_C(100000000)

/* More halves than these of one key within wait_ns are no halves of anything. */
#define JOIN_CANDIDATES_MAX 64

struct join_options {
    int64_t wait_ns;      /* a server's half waits so long for its client's */
    int64_t root_wait_ns; /* what is below a server's half, for that, after the last of it */
    int64_t skew_ns;      /* so much two hosts' clocks may differ */
    uint64_t max_bytes;   /* with more, what has waited for longest is given out */
};

/* halves = joined + unjoined + ambiguous + waiting, always */
struct join_counts {
    uint64_t halves;     /* servers' ones */
    uint64_t joined;     /* have a parent now */
    uint64_t unjoined;   /* no client's half came in time */
    uint64_t ambiguous;  /* more than one could be it, or it could be more than one's */
    uint64_t waiting;    /* now */
    uint64_t late;       /* of those unjoined: the client's half came afterwards */
    uint64_t early;      /* traces given out before their time, to make room */
    uint64_t rootless;   /* traces, or parts of them, whose server's half did not come in time */
    uint64_t spans_held; /* now */
    uint64_t held_bytes; /* now, with all that is remembered */
    uint64_t unheld;     /* spans passed on at once, for want of memory */
};

struct join;

/*
 * Is told of each span that was held, when it is known whose it is. The span is valid during the
 * call only.
 */
typedef void join_deliver_fn(void *context, struct span *span);

/* Returns NULL when out of memory. */
struct join *join_new(const struct join_options *options, join_deliver_fn *deliver, void *context);

/* What is held is not given out: see join_flush_some(). NULL is allowed. */
void join_free(struct join *join);

/* Of join_add(), for a span that may have something to do with joining. */
bool join_take(struct join *join, struct span *span, int64_t now_ns);

/*
 * Whether the span is held: then it is given to deliver() later. If not it is the caller's to pass
 * on, in its trace, which may be another one by now. Gives out before what is due.
 */
static inline bool join_add(struct join *join, struct span *span, int64_t now_ns)
{
    return (span->trace_id_high == JOIN_TRACE_HIGH || span->kind == SPAN_CLIENT) &&
           join_take(join, span, now_ns);
}

/* Trace time has reached now_ns: gives out what is due. */
void join_advance(struct join *join, int64_t now_ns);

/* No other span will come: gives out so many traces, and returns whether there are more. */
bool join_flush_some(struct join *join, unsigned traces);

struct join_counts join_counts(const struct join *join);

/*
 * Of a recording in several traces: what waits at a trace's end waits for the next one. It is not
 * counted here any more, but where it is restored. Only join_save() and
 * join_free() may follow.
 */
void join_hand_over(struct join *join);

struct assembler;

void join_save(const struct join *join, struct assembler *assembler, struct state_writer *writer);

/* Into a new one; the assembler is restored already. */
void join_restore(struct join *join, struct assembler *assembler, struct state_reader *reader);

#endif
