/*
 * A stage that joins made-up halves, its output, and its sums.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_JOIN_CHECKS_H
#define TESTS_JOIN_CHECKS_H

#include "babeltrace-plugin/base/buffer.h"
#include "check.h"
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "join_spans.h"

#include <string.h>

#define MARK JOIN_TRACE_HIGH
#define MANY UINT64_C(300000)

static const struct join_options options = {
    .wait_ns = 2 * SECOND, .root_wait_ns = 60 * SECOND, .skew_ns = MS, .max_bytes = 64 << 20};

/* The output: "TRACE/ID<PARENT", with "m" before TRACE if its upper 64 bits are MARK. */
static char out[1 << 16];
static uint64_t out_count;
static bool is_quiet;

static inline void note(const struct span *span)
{
    const size_t length = strlen(out);

    out_count++;
    if (!is_quiet)
        (void)snprintf(out + length, sizeof(out) - length, "%s%" PRIu64 "/%" PRIu64 "<%" PRIu64 " ",
                       span->trace_id_high == MARK ? "m" : "", span->trace_id, span->id,
                       span->parent_id);
}

static struct chain chain;
static uint64_t held; /* given spans minus the output */

static inline void deliver(void *context, const struct span *span)
{
    (void)context;
    held--;
    note(span);
}

static inline struct stage *begin_with(const struct join_options *with, chain_deliver_fn *to)
{
    struct stage *join = join_stage_new(with);

    chain_init(&chain, to, NULL);
    chain_append(&chain, join);
    return join;
}

static inline struct stage *begin(const struct join_options *with)
{
    out[0] = '\0';
    out_count = held = 0;
    is_quiet = false;
    return begin_with(with, deliver);
}

static inline void check_sums(const struct stage *join)
{
    const struct join_counts counts = join_stage_counts(join);

    CHECK(counts.halves == counts.joined + counts.unjoined + counts.ambiguous + counts.waiting);
    CHECK(counts.spans_held == held);
    CHECK(counts.held_bytes <= options.max_bytes);
}

static inline struct join_counts end(struct stage *join)
{
    struct join_counts counts;

    while (chain_flush_some(&chain, 1))
        check_sums(join);
    check_sums(join);
    counts = join_stage_counts(join);
    CHECK(held == 0 && counts.waiting == 0 && counts.late <= counts.unjoined);
    chain_free(&chain);
    return counts;
}

/* Gives a span at now_ms. give() gives a span at the time of its end. */
static inline void give_at(struct stage *join, int64_t now_ms, struct made made)
{
    struct span span;

    CHECK(make_span(&span, &made));
    held++;
    chain_take(&chain, &span, now_ms * MS);
    free(span.log);
    check_sums(join);
}

static inline void give(struct stage *join, struct made made)
{
    give_at(join, made.end_ms, made);
}

/* The values are in the order of struct made. */
#define SERVES(trace, id, from, to, key) \
    ((struct made){MARK, trace, id, 0, from, to, key, SPAN_SERVER, {0, 0, 0}})
#define CLIENT(high, trace, id, parent, from, to, key) \
    ((struct made){high, trace, id, parent, from, to, key, SPAN_CLIENT, {0, 0, 0}})
#define CALL(trace, id, parent, from, to) \
    ((struct made){MARK, trace, id, parent, from, to, 0, SPAN_LOCAL, {0, 0, 0}})

#endif
