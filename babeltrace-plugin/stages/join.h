/*
 * Joining, a stage: finds the two halves of a request between programs that send each other no ids.
 *
 * Both halves have a tag with the same key (tracepoints/format/join.h). A server's half begins a
 * trace with a marked id, and the stage holds all spans of that trace until the client is known.
 * A client's span with the same key becomes the parent if the server's half began during that span.
 * The trace gets the client's trace id. If the client's trace is held, too, the id of that trace is
 * decided first. So a chain of programs becomes one trace, and each span is renamed once. A trace
 * without a client's half, or with two candidates, keeps its id. Spans of other traces pass at
 * once.
 *
 * The halves may arrive in any order. Two halves that fit are compared again JOIN_SETTLE_NS later,
 * when other halves of that time have arrived, too.
 *
 * Time is trace time. No decision depends on seeds or addresses: the same trace read again is
 * joined alike. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_JOIN_H
#define BLKIN_STAGES_JOIN_H

#include "tracepoints/format/join.h"

#include "babeltrace-plugin/base/table.h"

#include "chain.h"

#define JOIN_SETTLE_NS INT64_C(100000000)

/* If one key has more halves within wait_ns, the stage joins none of them. */
#define JOIN_CANDIDATES_MAX 64

struct join_options {
    int64_t wait_ns;      /* the longest wait of a server's half for its client's half */
    int64_t root_wait_ns; /* the longest wait of other spans for their server's half, counted from
                             the last of these spans */
    int64_t skew_ns;      /* the largest difference of two hosts' clocks */
    uint64_t max_bytes;   /* above, the longest held trace is given out */
};

/* A span's part in a request between programs that send each other no ids. */
struct join_half {
    bool is_client;
    uint64_t key;
    uint64_t network; /* where the key's addresses are unique; 0: in the world; see JOIN_TAG */
    uint64_t request_bytes, response_bytes; /* not used if network is 0 */
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    int64_t start_ns;
    int64_t end_ns;
    /* private members of the stage */
    struct table_link in_table;
    bool is_taken; /* of a client: has become a parent */
    bool is_late;  /* of a server: counted as late */
};

enum join_verdict { JOIN_ALONE, JOIN_PAIR, JOIN_UNSURE };

/* A decided trace. */
struct join_place {
    enum join_verdict verdict;
    uint64_t trace_id_high, trace_id; /* its final id */
    uint64_t parent_id;               /* of its root; JOIN_PAIR only */
};

/* always: halves = joined + unjoined + ambiguous + waiting */
struct join_counts {
    uint64_t halves;    /* servers' halves */
    uint64_t joined;    /* with a parent */
    uint64_t unjoined;  /* no client's half arrived in time */
    uint64_t ambiguous; /* two clients' or two servers' halves fit */
    uint64_t waiting;   /* current number */
    uint64_t late;      /* of the unjoined: the client's half arrived afterwards */
    uint64_t early;     /* traces given out early, to make room */
    uint64_t rootless;  /* traces, or parts of traces, whose server's half did not arrive in time */
    uint64_t spans_held; /* current number */
    uint64_t held_bytes; /* current size, with all indexes */
    uint64_t unheld;     /* passed on at once, for lack of memory */
};

/* Returns NULL when out of memory. */
struct stage *join_stage_new(const struct join_options *options);

struct join_counts join_stage_counts(const struct stage *stage);

/* ---- halves whose spans are elsewhere -------------------------------------------------------- */

/* Returns false if the span is no half. */
bool join_read_half(const struct span *span, struct join_half *half);

/* Finds the client's half of a server's half in a table of halves by hash_number() of their keys.
 * JOIN_PAIR: exactly one client's half fits, and only this server's half fits that client's half.
 */
enum join_verdict join_find_client(const struct table *halves, int64_t skew_ns,
                                   const struct join_half *server, struct join_half **client);

/* Gives a span of a marked trace the ids of `place`; the stage does not change such a span again.
 * Without memory, the tag blkin.joined is missing. */
void join_put_span(struct span *span, const struct join_place *place);

static inline bool join_is_before(int64_t a, int64_t b, int64_t skew_ns)
{
    return a <= b || (uint64_t)a - (uint64_t)b <= (uint64_t)skew_ns;
}

/* Returns true if two halves of one key fit: the server's half begins during the client's half. The
 * server's end is not compared. A server that waits for a CPU after its last write may return long
 * after the client has read the answer. Inline, because searches call the function often. */
static inline bool join_half_fits(const struct join_half *a, const struct join_half *b,
                                  int64_t skew_ns)
{
    const struct join_half *client = a->is_client ? a : b, *server = a->is_client ? b : a;

    return a->is_client != b->is_client &&
           join_is_before(client->start_ns, server->start_ns, skew_ns) &&
           join_is_before(server->start_ns, client->end_ns, skew_ns);
}

#endif
