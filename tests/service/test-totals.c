/*
 * The account of a service over its readers' runs: each span is counted once, and the sums hold,
 * also when a reader with a spool was killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/base/reader_account.h"
#include "tools/base/totals.h"

#include <stdlib.h>
#include <unistd.h>

static struct totals totals;
static char stats_file[] = "/tmp/totals.XXXXXX";

/* A run that has found so many in its spool, put in as many, and delivered as many of these. */
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

static void add(const char *state, const struct counts *counts)
{
    static int runs;
    char started[16];
    json_t *json;

    (void)snprintf(started, sizeof(started), "%d", ++runs);
    json = json_pack("{ss, ss, si, so}", "state", state, "started", started, "pid", 7, "counters",
                     counts_json(counts));
    CHECK(json && json_dump_file(json, stats_file, 0) == 0);
    json_decref(json);
    (void)totals_add_run(&totals, stats_file);
    (void)totals_add_run(&totals, stats_file); /* once more: it is in the sums already */
    CHECK(counts_add_up(&totals.sinks));
}

static void test_killed_with_spool(void)
{
    const struct counts first = spooled(0, 60060, 28028), nothing = {.output = {.spans = 0}},
                        second = spooled(32032, 0, 2032), third = spooled(30000, 40, 30040);
    const struct spool_counts *spool = &totals.sinks.output.spool;

    totals = (struct totals){.has_open = false};
    add("running", &first);
    CHECK(spool->spans == 60060 && spool->waiting == 32032);
    add("running", &nothing); /* killed before it could tell anything */
    CHECK(spool->spans == 60060 && spool->waiting == 32032 && spool->unknown == 0);
    add("running", &second);
    CHECK(spool->spans == 60060 && spool->found == 0 && spool->waiting == 30000);
    add("ended", &third);
    CHECK(spool->spans == 60100 && spool->waiting == 0 && spool->unknown == 0);
    CHECK(spool->outcome[OUTCOME_ACCEPTED] == 60100);
    CHECK(totals.sinks.output.outcome[OUTCOME_SPOOLED] == 60100);
}

/* While one runs, and from one run of the service to the next. */
static void test_going_on(void)
{
    static const struct totals_table table = {"test", NULL, 0};
    const struct counts first = spooled(0, 100, 20);
    const struct reader_account now = {.counts = spooled(80, 10, 5)};
    struct counts sum;
    json_t *json;

    totals = (struct totals){.has_open = false};
    add("running", &first);
    json = totals_json(&totals, &table, NULL);
    CHECK(json && totals_read(json, &totals, &table, NULL));
    json_decref(json);
    sum = totals.sinks;
    totals_add(&sum, &now);
    CHECK(counts_add_up(&sum) && sum.output.spool.spans == 110 && sum.output.spool.waiting == 85);
}

/* What waited in the memory of one that was killed comes again. */
static void test_killed(void)
{
    struct counts counts = {.output = {.spans = 100, .waiting = 30}};

    counts.output.outcome[OUTCOME_ACCEPTED] = 70;
    totals = (struct totals){.has_open = false};
    add("running", &counts);
    CHECK(totals.sinks.output.spans == 70 && totals.sinks.output.waiting == 0);
}

int main(void)
{
    const int fd = mkstemp(stats_file);

    CHECK(fd >= 0 && close(fd) == 0);
    test_killed_with_spool();
    test_going_on();
    test_killed();
    CHECK(unlink(stats_file) == 0);
    return check_status();
}
