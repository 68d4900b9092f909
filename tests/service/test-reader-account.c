/*
 * Accounts of readers that come one after the other: each span is counted once, and the sums hold.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/base/reader_account.h"

static struct counts run(uint64_t accepted, uint64_t waiting)
{
    struct counts counts = {.output = {.spans = accepted + waiting, .waiting = waiting}};

    counts.output.outcome[OUTCOME_ACCEPTED] = accepted;
    return counts;
}

static void test_killed(void)
{
    struct counts first = run(70, 30), sum = {0};
    const struct counts second = run(5, 2);

    CHECK(counts_bury(&first) == 30);
    counts_follow(&sum, &first);
    counts_follow(&sum, &second);
    CHECK(counts_add_up(&sum));
    CHECK(sum.output.spans == 107 && sum.output.outcome[OUTCOME_ACCEPTED] == 75);
    CHECK(sum.output.outcome[OUTCOME_UNDELIVERED] == 30 && sum.output.waiting == 2);
}

/* Begins, halves and spans that wait for more are the next run's. */
static void test_open(void)
{
    struct counts first = run(70, 30), sum = {0};

    first.output.held = 4;
    first.output.spans += 4;
    first.input.rules.begins = 9;
    first.input.rules.spans = 7;
    first.input.rules.open = 2;
    first.input.join.halves = 6;
    first.input.join.joined = 5;
    first.input.join.waiting = 1;
    CHECK(counts_add_up(&first));
    sum = first;
    CHECK(counts_bury(&first) == 30 && counts_add_up(&first));
    CHECK(first.output.spans == 100 && first.input.rules.begins == 7 &&
          first.input.join.halves == 5);
    counts_hand_over(&sum);
    CHECK(counts_add_up(&sum) && sum.output.spans == 70 && sum.input.rules.open == 0);
}

/* A run that has found so many in its spool, put in as many, and delivered as many. */
static struct counts spooled(uint64_t found, uint64_t put, uint64_t delivered)
{
    struct counts counts = {.output = {.spans = put}};

    counts.output.outcome[OUTCOME_SPOOLED] = put;
    counts.output.spool.found = found;
    counts.output.spool.spans = found + put;
    counts.output.spool.outcome[OUTCOME_ACCEPTED] = delivered;
    counts.output.spool.waiting = found + put - delivered;
    CHECK(counts_add_up(&counts));
    return counts;
}

static void test_spool(void)
{
    struct counts first = spooled(10, 100, 20), second = spooled(90, 50, 140), sum = {0};

    CHECK(counts_bury(&first) == 0);
    counts_follow(&sum, &first);
    CHECK(counts_add_up(&sum) && sum.output.spool.waiting == 90); /* they are there still */
    counts_follow(&sum, &second);
    CHECK(counts_add_up(&sum));
    CHECK(sum.output.spool.spans == 160 && sum.output.spool.found == 10);
    CHECK(sum.output.spool.outcome[OUTCOME_ACCEPTED] == 160 && sum.output.spool.waiting == 0);
}

/* The first was killed after its last account, and 7 more had left by then: nobody knows how. */
static void test_spool_of_killed(void)
{
    struct counts first = spooled(0, 100, 20), second = spooled(73, 0, 0), sum = {0};

    (void)counts_bury(&first);
    counts_follow(&sum, &first);
    counts_follow(&sum, &second);
    CHECK(counts_add_up(&sum));
    CHECK(sum.output.spool.spans == 100 && sum.output.spool.waiting == 73);
    CHECK(sum.output.spool.outcome[OUTCOME_ACCEPTED] == 20 && sum.output.spool.unknown == 7);
}

int main(void)
{
    test_killed();
    test_open();
    test_spool();
    test_spool_of_killed();
    return check_status();
}
