/*
 * Accounts of readers that run in turn, and the account of a service over its readers' runs: each
 * span is counted once, and the sums hold, also when a reader with a spool was killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/base/metrics.h"
#include "tools/base/totals.h"

#include <stdlib.h>
#include <string.h>

/* ---- readers --------------------------------------------------------------------------------- */

static struct counts run(uint64_t accepted, uint64_t waiting)
{
    struct counts counts = {.output = {.spans = accepted + waiting, .waiting = waiting}};

    counts.output.outcome[OUTCOME_ACCEPTED] = accepted;
    return counts;
}

TEST(test_readers_killed)
{
    struct counts first = run(70, 30), sum = {0};
    const struct counts second = run(5, 2);

    CHECK(counts_close(&first) == 30);
    counts_follow(&sum, &first);
    counts_follow(&sum, &second);
    CHECK(counts_add_up(&sum));
    CHECK(sum.output.spans == 107 && sum.output.outcome[OUTCOME_ACCEPTED] == 75);
    CHECK(sum.output.outcome[OUTCOME_UNDELIVERED] == 30 && sum.output.waiting == 2);
}

/* Begins, halves and held spans belong to the next run. */
TEST(test_open)
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
    CHECK(counts_close(&first) == 30 && counts_add_up(&first));
    CHECK(first.output.spans == 100 && first.input.rules.begins == 7 &&
          first.input.join.halves == 5);
    counts_hand_over(&sum);
    CHECK(counts_add_up(&sum) && sum.output.spans == 70 && sum.input.rules.open == 0);
}

/* Missing events that may still come count as missing and as unsure, as nobody waits for them. */
TEST(test_awaited)
{
    struct counts counts = {.core = {.events_missing = 5, .events_unsure = 1, .events_awaited = 3}};

    counts_hand_over(&counts);
    CHECK(counts.core.events_missing == 8 && counts.core.events_unsure == 4 &&
          counts.core.events_awaited == 0);
}

/* Returns the counts of a run: spans found in its spool, put into it, and delivered from it. */
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

/* The first run was killed after its last account, and 7 more spans had left the spool by then,
 * with an unknown outcome. */
TEST(test_spool_of_killed)
{
    struct counts first = spooled(0, 100, 20), second = spooled(73, 0, 0), sum = {0};

    (void)counts_close(&first);
    counts_follow(&sum, &first);
    counts_follow(&sum, &second);
    CHECK(counts_add_up(&sum));
    CHECK(sum.output.spool.spans == 100 && sum.output.spool.waiting == 73);
    CHECK(sum.output.spool.outcome[OUTCOME_ACCEPTED] == 20 && sum.output.spool.unknown == 7);
}

/* ---- the service ----------------------------------------------------------------------------- */

static struct counts sinks; /* of all runs */

/* Adds a run, as far as it was reported before its end or its kill. */
static void add(const struct counts *counts)
{
    struct counts told = *counts;

    counts_hand_over(&told);
    counts_follow(&sinks, &told);
    CHECK(counts_add_up(&sinks));
}

TEST(test_killed_with_spool)
{
    const struct counts first = spooled(0, 60060, 28028), second = spooled(32032, 0, 2032),
                        third = spooled(30000, 40, 30040);
    const struct spool_counts *spool = &sinks.output.spool;

    memset(&sinks, 0, sizeof(sinks));
    add(&first);
    CHECK(spool->spans == 60060 && spool->waiting == 32032);
    add(&second);
    CHECK(spool->spans == 60060 && spool->found == 0 && spool->waiting == 30000);
    add(&third);
    CHECK(spool->spans == 60100 && spool->waiting == 0 && spool->unknown == 0);
    CHECK(spool->outcome[OUTCOME_ACCEPTED] == 60100);
    CHECK(sinks.output.outcome[OUTCOME_SPOOLED] == 60100);
}

/* The sum holds while a reader runs, and after a restart of the service. */
TEST(test_restart)
{
    static const struct totals_table table = {"test", NULL, 0};
    const struct counts first = spooled(0, 100, 20);
    const struct counts now = spooled(80, 10, 5);
    struct counts sum;
    json_t *json;

    memset(&sinks, 0, sizeof(sinks));
    add(&first);
    json = totals_json(&sinks, &table, NULL);
    CHECK(json && totals_read(json, &sinks, &table, NULL));
    json_decref(json);
    sum = sinks;
    counts_follow(&sum, &now);
    CHECK(counts_add_up(&sum) && sum.output.spool.spans == 110 && sum.output.spool.waiting == 85);
}

/* If a file lacks the counters of the sinks, the service's own counters begin at 0, too. */
TEST(test_damaged)
{
    static const char *const damaged[] = {"{\"alarms\": 7}", "{\"alarms\": 7, \"counters\": 8}",
                                          "[]"};
    static const struct total own[] = {{"alarms", 0, "Alarms."}};
    static const struct totals_table totals_table = {"test", own, 1};
    uint64_t alarms;
    json_t *json = json_loads("{\"alarms\": 7, \"counters\": {\"events\": 8}}", 0, NULL);

    CHECK(totals_read(json, &sinks, &totals_table, &alarms));
    CHECK(alarms == 7 && sinks.input.events == 8);
    json_decref(json);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        json = json_loads(damaged[i], 0, NULL);
        alarms = 9;
        sinks.input.events = 9;
        CHECK(json && !totals_read(json, &sinks, &totals_table, &alarms));
        CHECK(alarms == 0 && sinks.input.events == 0);
        json_decref(json);
    }
}

/* The page's trace time is 0, because that of several runs would look like a session that stands
 * still. */
TEST(test_page)
{
    const struct counts counts = {.input = {.events = 7, .trace_time_ns = 5000000000}};
    char *page = metrics_page_text(&counts, NULL, strdup("own 1\n"));

    CHECK(page && strstr(page, "\nblkin_events_total 7\n") && strstr(page, "\nown 1\n"));
    CHECK(page && strstr(page, "\nblkin_trace_time_seconds 0.000\n"));
    free(page);
}

CHECK_MAIN
