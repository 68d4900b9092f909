/*
 * Fuzzes joining: spans of any halves, traces and times, in any order. Each span comes out once,
 * with its own id. The stage holds only spans of marked traces, and gives them another trace's id.
 * The sums hold, and memory is bounded. A joined half has a parent with its key, during which it
 * begins. No span waits longer than its limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/stages/join.h"

#include <inttypes.h>

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#define JOIN_SPANS 200

/* The given span, by its number, which is its id. */
struct join_given {
    uint64_t high, trace, parent, key;
    int64_t start_ns, end_ns, since_ns;
    enum span_kind kind;
    bool is_held, is_out;
};

static struct fuzz source;
static struct join_given given[JOIN_SPANS + 1];
static uint64_t count, held;
static int64_t now_ns;
static struct join_options options;
static struct chain chain;
static struct stage *join;

static void check_parent(const struct join_given *server, const struct span *span)
{
    const struct join_given *client = &given[span->parent_id];

    REQUIRE(span->parent_id && span->parent_id <= count);
    REQUIRE(server->kind == SPAN_SERVER && server->high == JOIN_TRACE_HIGH);
    REQUIRE(client->kind == SPAN_CLIENT && client->key == server->key);
    REQUIRE(client->start_ns <= server->start_ns + options.skew_ns);
    REQUIRE(client->end_ns + options.skew_ns >= server->start_ns);
}

static void check_out(const struct span *span)
{
    struct join_given *was = &given[span->id];

    REQUIRE(span->id && span->id <= count && !was->is_out);
    was->is_out = true;
    if (was->high != JOIN_TRACE_HIGH)
        REQUIRE(span->trace_id_high == was->high && span->trace_id == was->trace);
    if (span->parent_id != was->parent)
        check_parent(was, span);
}

static void deliver(void *context, const struct span *span)
{
    (void)context;
    REQUIRE(given[span->id].is_held);
    held--;
    check_out(span);
}

static void check_counts(void)
{
    const struct join_counts counts = join_stage_counts(join);

    REQUIRE(counts.halves == counts.joined + counts.unjoined + counts.ambiguous + counts.waiting);
    REQUIRE(counts.spans_held == held && counts.held_bytes <= options.max_bytes);
    REQUIRE(counts.late <= counts.unjoined);
}

static void add_key(struct span *span, uint64_t choice, uint64_t key)
{
    char text[17];

    (void)snprintf(text, sizeof(text), "%016" PRIx64, key);
    if (choice & 1)
        REQUIRE(span_add(span, SPAN_TAG_TEXT, text_of("other"), text_of("value"), 0));
    REQUIRE(span_add(span, SPAN_TAG_TEXT, text_of(JOIN_TAG), (struct text){text, 16}, 0));
}

/* Makes a span with one of few keys, traces and moments, so that many meet. */
static void give(void)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};
    const uint64_t choice = take(&source, 1), numbers = take(&source, 1), times = take(&source, 1);
    const uint64_t id = ++count;
    struct join_given *new = &given[id];
    struct span span = {.id = id, .endpoint = &endpoint};

    *new = (struct join_given){
        .high = choice & 3 ? JOIN_TRACE_HIGH : choice >> 2 & 1,
        .trace = 1 + numbers % 8,
        .key = numbers >> 3 & 7,
        .parent = choice & 4 ? 0 : 1000 + (choice >> 3 & 3),
        .kind = (enum span_kind)(numbers >> 6 ? SPAN_CLIENT + (numbers >> 6 & 1) : SPAN_LOCAL),
    };
    now_ns += (int64_t)(choice >> 5) * 3000000;
    new->end_ns = now_ns - (int64_t)(times & 7) * 500000;
    new->start_ns = new->end_ns - (int64_t)(times >> 3) * 500000;
    span.trace_id_high = new->high;
    span.trace_id = new->trace;
    span.parent_id = new->parent;
    span.kind = new->kind;
    span.start_ns = new->start_ns;
    span.end_ns = new->end_ns;
    REQUIRE(span_set_name(&span, text_of("name")));
    if (new->key)
        add_key(&span, choice, new->key);
    new->is_held = true;
    new->since_ns = now_ns;
    held++;
    chain_take(&chain, &span, now_ns);
    REQUIRE(new->is_out || new->high == JOIN_TRACE_HIGH);
    free(span.log);
}

/* Even in a chain of joins, a request waits for no more roots than there are. */
static void check_waits(void)
{
    const int64_t most_ns = JOIN_SPANS * (options.wait_ns + options.root_wait_ns + JOIN_SETTLE_NS);

    for (uint64_t i = 1; i <= count; i++)
        REQUIRE(given[i].is_out || now_ns - given[i].since_ns <= most_ns);
}

static void end(void)
{
    if (sum_of(source.at, 0) % 2 == 0 && count % 2) {
        chain_advance(&chain, INT64_MAX);
        check_counts();
    }
    while (chain_flush_some(&chain, 1 + (unsigned)(count % 3)))
        check_counts();
    check_counts();
    for (uint64_t i = 1; i <= count; i++)
        REQUIRE(given[i].is_out);
    REQUIRE(held == 0 && join_stage_counts(join).waiting == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    random_number = sum_of(data, size);
    source = (struct fuzz){data, data + size};
    count = held = 0;
    now_ns = 1000000000;
    options = (struct join_options){
        .wait_ns = (int64_t)(1 + take(&source, 1)) * 1000000,
        .root_wait_ns = (int64_t)(1 + take(&source, 1)) * 1000000,
        .skew_ns = (int64_t)(take(&source, 1) % 4) * 250000,
        .max_bytes = 2000 + take(&source, 1) * 200,
    };
    join = join_stage_new(&options);
    REQUIRE(join);
    chain_init(&chain, deliver, NULL);
    chain_append(&chain, join);
    while (source.at < source.end && count < JOIN_SPANS) {
        give();
        check_counts();
        check_waits();
    }
    end();
    chain_free(&chain);
    return 0;
}

#pragma clang attribute pop
