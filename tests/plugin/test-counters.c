/*
 * The table of the account's counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/counters.h"
#include "check.h"

#include <stddef.h>
#include <string.h>

/* Counter number i has the value i + 1. */
static struct counts numbered(void)
{
    struct counts counts = {0};

    for (size_t i = 0; i < counters_count; i++) {
        const uint64_t value = i + 1;

        memcpy((char *)&counts + counters[i].offset, &value, sizeof(value));
    }
    return counts;
}

TEST(test_table)
{
    const struct counts counts = numbered();
    int totals = 0;

    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];

        /* no two entries show the same number */
        CHECK(counter_value(counter, &counts) == i + 1);
        CHECK(strspn(counter->name, "abcdefghijklmnopqrstuvwxyz_") == strlen(counter->name));
        CHECK(strpbrk(counter->help, "\"\\\n") == NULL && counter->help[0]);
        CHECK(i == 0 || counter->section >= counters[i - 1].section);
        totals += counter->label && counter->label[0] == '\0';
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(counter->name, counters[j].name) != 0);
    }
    CHECK(totals == 5);
}

/* Counters' names are public, and two swapped names leave the sums right. So this table checks the
 * names that no other test reads. */
/* clang-format off */
#define IS(name, member)     {name, offsetof(struct counts, member)}
#define OF_SPANS(name, of)   IS("spans_" #name, output.outcome[OUTCOME_##of])
#define SPOOL(name, of)      IS("spool_" #name, output.spool.outcome[OUTCOME_##of])
#define RULE(name)           IS("rule_" #name, input.rules.name)
#define OF_JOIN(name)        IS("join_" #name, input.join.name)
#define OF_TAIL(name)        IS(#name, input.tail.name)
#define OF_METRICS(name)     IS("metrics_" #name, input.hosts.name)
#define HOST(name)           IS("host_" #name, input.hosts.name)
static const struct {
    const char *name;
    size_t offset;
} names[] = {
    IS("events_newer", input.newer), IS("events_unreadable", input.unreadable),
    IS("events_unwanted", input.unwanted), IS("events_of_alarms", input.alarms),
    IS("events_of_rules", core.events_rule), IS("events_of_processes", core.events_process),
    IS("events_unsure", core.events_unsure), IS("events_awaited", core.events_awaited),
    IS("metrics_missing", core.metrics_missing), IS("annotations_lost", core.log_errors),
    IS("spans_evicted", core.spans_evicted), IS("steps_spilled", core.steps_spilled),
    IS("not_noted", core.not_noted), IS("services_merged", core.services_merged),
    IS("lttng_packets_discarded", input.discarded_packets),
    IS("spans_cut", output.cut), IS("spans_unsure", output.unsure),
    OF_SPANS(refused, REFUSED), OF_SPANS(no_memory, NO_MEMORY),
    OF_SPANS(possibly_persisted, POSSIBLY_PERSISTED),
    SPOOL(delivered, ACCEPTED), SPOOL(refused, REFUSED), SPOOL(invalid, INVALID),
    SPOOL(too_large, TOO_LARGE), SPOOL(undelivered, UNDELIVERED),
    SPOOL(possibly_persisted, POSSIBLY_PERSISTED),
    IS("spool_unknown", output.spool.unknown), IS("spool_errors", output.spool.errors),
    IS("spool_unreadable", output.spool.unreadable),
    OF_TAIL(traces_sampled_out), OF_TAIL(spans_unheld), OF_TAIL(traces_held), OF_TAIL(names_merged),
    RULE(begins), RULE(shorter), RULE(begun_again), RULE(dropped), RULE(unusable), RULE(open),
    RULE(ends_unmatched), RULE(stages_unmatched), RULE(keyless), RULE(evicted), RULE(stages),
    RULE(no_room), RULE(open_bytes), IS("rule_begins_unmatched", input.rules.unmatched),
    IS("rule_parents", input.rules.with_parent),
    IS("rule_parents_missing", input.rules.without_parent),
    OF_JOIN(unjoined), OF_JOIN(ambiguous), OF_JOIN(waiting), OF_JOIN(late), OF_JOIN(early),
    OF_JOIN(rootless), OF_JOIN(unheld), OF_JOIN(spans_held), OF_JOIN(held_bytes),
    OF_METRICS(unnamed), OF_METRICS(invalid), IS("metrics_anew", input.hosts.resets),
    OF_METRICS(no_room), HOST(spans_tagged), HOST(spans_early), HOST(tags_lost), HOST(spans_held),
    HOST(held_bytes), HOST(history_bytes),
};
/* clang-format on */

TEST(test_names)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t at = 0;

        while (at < counters_count && strcmp(counters[at].name, names[i].name) != 0)
            at++;
        if (at == counters_count || counters[at].offset != names[i].offset)
            fprintf(stderr, "%s is missing, or shows another member\n", names[i].name);
        CHECK(at < counters_count && counters[at].offset == names[i].offset);
    }
}

/* Each member of struct counts, all of 64 bits, must be shown: a new counter needs a line in the
 * table. */
TEST(test_all_are_shown)
{
    /*
     * Members that no counter shows: core.events and core.spans_finished, the same as totals;
     * input.trace_time_ns, a time; the four of input.settled, a position; the three of the stages'
     * spans, which counts_add_stages() adds to output. Members of the spool: in_use, a flag;
     * lost_own, a part of other counters; and outcomes that the spool cannot have: spooled,
     * skipped, sampled out and no memory.
     */
    const size_t not_shown = 16;

    CHECK(counters_count == sizeof(struct counts) / sizeof(uint64_t) - not_shown);
}

/* Spans that the exporter got after the stages were counted are not held, and count once. */
TEST(test_stages)
{
    struct counts counts = {
        .input = {.spans = 100, .spans_skipped = 10, .spans_sampled_out = 20},
        .output = {.spans = 50, .outcome = {[OUTCOME_ACCEPTED] = 45}, .waiting = 5},
    };

    counts_add_stages(&counts);
    CHECK(counts.output.spans == 100 && counts.output.held == 20);
    counts.output = (struct exporter_counts){.spans = 75, .outcome = {[OUTCOME_ACCEPTED] = 75}};
    counts_add_stages(&counts);
    CHECK(counts.output.spans == 105 && counts.output.held == 0);
    CHECK(counts.output.outcome[OUTCOME_SKIPPED] == 10);
    CHECK(counts.output.outcome[OUTCOME_SAMPLED_OUT] == 20);
}

CHECK_MAIN
