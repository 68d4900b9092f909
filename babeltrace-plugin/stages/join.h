/*
 * Joining, a stage: finds the two halves of a request between programs that send each other no ids.
 *
 * Both halves have a tag with the same key (tracepoints/format/join.h). A server's half begins a
 * trace with a marked id, and the stage holds all spans of that trace until the client is known.
 * A client's span with the same key becomes the parent if the server's half began during that span.
 * The trace gets the client's trace id. If the client's trace is held, too, its own id is decided
 * first. So a chain of programs becomes one trace, and each span is renamed once. A trace without a
 * client's half, or with two candidates, keeps its id. Spans of other traces pass at once.
 *
 * The halves may come in any order. Two halves that fit are compared again JOIN_SETTLE_NS later,
 * when other halves of that time have come, too.
 *
 * Time is trace time. No decision depends on seeds or addresses: the same trace read again is
 * joined alike. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_JOIN_H
#define BLKIN_CORE_JOIN_H

#include "tracepoints/format/join.h"

#include "chain.h"

#define JOIN_SETTLE_NS INT64_C(100000000)

/* More halves of one key within wait_ns are no halves of a request. */
#define JOIN_CANDIDATES_MAX 64

struct join_options {
    int64_t wait_ns;      /* the longest wait of a server's half for its client's half */
    int64_t root_wait_ns; /* the longest wait of other spans for their server's half, after the last
                             of them */
    int64_t skew_ns;      /* the largest difference of two hosts' clocks */
    uint64_t max_bytes;   /* beyond, the longest held trace is given out */
};

/* always: halves = joined + unjoined + ambiguous + waiting */
struct join_counts {
    uint64_t halves;     /* servers' halves */
    uint64_t joined;     /* with a parent */
    uint64_t unjoined;   /* no client's half came in time */
    uint64_t ambiguous;  /* two clients' or two servers' halves fit */
    uint64_t waiting;    /* current number */
    uint64_t late;       /* of the unjoined: the client's half came afterwards */
    uint64_t early;      /* traces given out early, to make room */
    uint64_t rootless;   /* traces, or parts of traces, whose server's half did not come in time */
    uint64_t spans_held; /* current number */
    uint64_t held_bytes; /* current size, with all indexes */
    uint64_t unheld;     /* passed on at once, for lack of memory */
};

/* If joining is off, the stage passes all spans. Returns NULL when out of memory. */
struct stage *join_stage_new(const struct join_options *options);

struct join_counts join_stage_counts(const struct stage *stage);

#endif
