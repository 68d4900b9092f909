/*
 * Joining, a stage: the two halves of a request between programs that send each other no ids.
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

#include "chain.h"

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

/* It is off where programs' halves are not to be joined. Returns NULL when out of memory. */
struct stage *join_stage_new(const struct join_options *options);

struct join_counts join_stage_counts(const struct stage *stage);

#endif
