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

/* The output: "TRACE/ID<PARENT". Before TRACE its upper 64 bits ("m" for MARK, or "HIGH:"), unless
 * they are 0; after PARENT the tag with the former trace id. */
#define WAS "=626c6b2d6a6f696e00000000000"
static char out[1 << 16];
static uint64_t out_count;
static bool is_quiet;

static inline void note(const struct span *span)
{
    const struct span_entry *tag = span_find_tag(span, text_of("blkin.joined"));
    const struct text was = tag ? span_entry_value(tag) : text_of("");
    const size_t length = strlen(out);
    char high[24] = "m";

    out_count++;
    if (span->trace_id_high != MARK)
        (void)snprintf(high, sizeof(high), "%" PRIu64 ":", span->trace_id_high);
    if (!is_quiet)
        (void)snprintf(out + length, sizeof(out) - length,
                       "%s%" PRIu64 "/%" PRIu64 "<%" PRIu64 "%s%.*s ",
                       span->trace_id_high ? high : "", span->trace_id, span->id, span->parent_id,
                       tag ? "=" : "", (int)was.length, was.data);
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
    chain_advance(&chain, INT64_MAX); /* the stage forgets all */
    counts = join_stage_counts(join);
    CHECK(held == 0 && counts.waiting == 0 && counts.held_bytes == 0);
    chain_free(&chain);
    return counts;
}

/* Ends the stage, and compares all counters. */
#define JOIN_ENDS(join, ...)                                                     \
    do {                                                                         \
        const struct join_counts counts_ = end(join), expected_ = {__VA_ARGS__}; \
        CHECK(memcmp(&counts_, &expected_, sizeof(counts_)) == 0);               \
    } while (0)

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
