/*
 * For each allocation of the stage join, a run in which it fails, and a run in which all later ones
 * fail, too. Nothing crashes or leaks. Each span comes out once, possibly not joined.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "join_spans.h"
#include "starvation/starve.h"

#define STARVED_REQUESTS 12

static uint64_t out, held;

static struct chain chain;

static void deliver(void *context, const struct span *span)
{
    (void)context;
    (void)span;
    out++;
    held--;
}

/* The test's own allocations do not fail. */
static void give(struct made made)
{
    const struct starve asked = starve;
    struct span span;
    uint64_t spent;

    starve.fail_at = 0;
    CHECK(make_span(&span, &made));
    spent = starve.count - asked.count;
    starve.fail_at = asked.fail_at ? asked.fail_at + spent : 0;
    held++;
    chain_take(&chain, &span, made.end_ms * MS);
    free(span.log);
}

static void work(struct stage *join)
{
    uint64_t in = 0;

    for (uint64_t i = 1; i <= STARVED_REQUESTS; i++) {
        const int64_t at = (int64_t)i * 10;

        give((struct made){JOIN_TRACE_HIGH, i, 2, 1, at + 2, at + 3, 0, SPAN_LOCAL, {0, 0, 0}});
        give(
            (struct made){JOIN_TRACE_HIGH, i, 3, 1, at + 2, at + 4, i + 1, SPAN_CLIENT, {0, 0, 0}});
        give((struct made){JOIN_TRACE_HIGH, i, 1, 0, at + 1, at + 5, i, SPAN_SERVER, {0, 0, 0}});
        if (i % 3 == 1)
            give((struct made){0, i, 9, 0, at, at + 6, i, SPAN_CLIENT, {0, 0, 0}});
        in += 3 + (i % 3 == 1);
    }
    while (chain_flush_some(&chain, 1))
        ;
    CHECK(out == in && held == 0);
    CHECK(join_stage_counts(join).spans_held == 0 && join_stage_counts(join).waiting == 0);
}

static uint64_t run_once(uint64_t fail_at, bool and_after, uint64_t *count)
{
    const struct join_options options = {
        .wait_ns = 30 * MS, .root_wait_ns = 50 * MS, .skew_ns = MS, .max_bytes = 4000};
    struct stage *join;

    out = held = 0;
    starve = (struct starve){.fail_at = fail_at, .and_after = and_after};
    chain_init(&chain, deliver, NULL);
    join = join_stage_new(&options);
    CHECK(join || fail_at);
    if (join) {
        chain_append(&chain, join);
        work(join);
    }
    chain_free(&chain);
    CHECK(starve.live == 0);
    *count = starve.count;
    return starve.failed;
}

int main(void)
{
    uint64_t count, ignored, fail_at = 1;

    (void)run_once(0, false, &count);
    CHECK(count > 60);
    /* until it makes no more allocations */
    for (; !check_failures && run_once(fail_at, false, &ignored); fail_at++)
        CHECK(run_once(fail_at, true, &ignored) >= 1);
    CHECK(fail_at > 50);
    printf("%d allocations\n", (int)fail_at - 1);
    return check_status();
}
