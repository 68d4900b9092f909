/*
 * Filters: their texts, the samples that pass, and the requests to the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/sampler/filter.h"

#include <stdlib.h>

#define FILTER_KIB UINT64_C(1024)

/* ---- the text -------------------------------------------------------------------------------- */

static struct host_rules rules;

static const char *refusal(const char *text)
{
    static struct error error;

    error_set(&error, "it is taken");
    (void)host_rules_parse(&rules, text, &error);
    return error.text;
}

/* REFUSED(text, wrong rule of the text, reason) */
#define REFUSED(text, rule, why) \
    CHECK_TEXT(refusal(text), "parameter \"host-filters\": \"" rule "\": " why)

#define THE_FORM                                                                                 \
    "expected GROUP every TIME, GROUP.VIEW changed NUMBER, or GROUP.VIEW > NUMBER (or <), then " \
    "perhaps \"for 1s\" and \"keep 10s\"; (NAME,...) may follow the view"

TEST(test_refused)
{
    REFUSED("disc every 1s", "disc every 1s",
            "there is no group \"disc\": expected one of cpu, memory, pressure, run_queue, disk, "
            "network, tcp, process, cgroup");
    REFUSED("disk every 1s, tcp.retrans > 1", "tcp.retrans > 1",
            "tcp has no view \"retrans\": expected one of tcp.retransmits, tcp.retransmit_share, "
            "tcp.established, tcp.opened, tcp.accepted, tcp.failed");
    REFUSED("disk", "disk", THE_FORM);
    REFUSED("disk every 1s,", "", THE_FORM);
    REFUSED("diskevery 1s", "diskevery 1s", THE_FORM);
    REFUSED("disk every ever", "disk every ever",
            "every: expected a duration such as 500ms, 10s or 2m, got \"ever\"");
    REFUSED("disk each 1s", "disk each 1s", THE_FORM);
    REFUSED("disk every", "disk every", THE_FORM);
    REFUSED("disk every 1 s", "disk every 1 s", THE_FORM);
    REFUSED("disk every 1s please", "disk every 1s please", THE_FORM);
    REFUSED("disk.busy every 1s", "disk.busy every 1s",
            "every: a group is recorded as a whole: expected \"disk every 1s\"");
    REFUSED("run-queue > 4", "run-queue > 4",
            "run_queue has no view \"\": expected one of run_queue.running, run_queue.blocked, "
            "run_queue.switches, run_queue.created, run_queue.load_1m");
    REFUSED("disk.busy > much", "disk.busy > much",
            "expected a number, without a unit or with %, got \"much\"");
    REFUSED("disk.busy > 95ms", "disk.busy > 95ms",
            "expected a number, without a unit or with %, got \"95ms\"");
    REFUSED("disk.read changed 5%/s", "disk.read changed 5%/s",
            "expected a number, without a unit or with B/s, or with %, got \"5%/s\"");
    REFUSED("run-queue.running > 0x10", "run-queue.running > 0x10",
            "expected a number, got \"0x10\"");
    REFUSED("run-queue.running > 1e3", "run-queue.running > 1e3", "expected a number, got \"1e3\"");
    REFUSED("run-queue.running > 5.", "run-queue.running > 5.", "expected a number, got \"5.\"");
    REFUSED("run-queue.running > -1", "run-queue.running > -1", "expected a number, got \"-1\"");
    REFUSED("disk.busy > 95% for ever", "disk.busy > 95% for ever",
            "for: expected a duration such as 500ms, 10s or 2m, got \"ever\"");
    REFUSED("disk.busy > 95% keep 10s for 1s", "disk.busy > 95% keep 10s for 1s", THE_FORM);
    REFUSED("memory.dirty changed 5% keep 10s", "memory.dirty changed 5% keep 10s", THE_FORM);
    REFUSED("memory.dirty(x) > 5", "memory.dirty(x) > 5", "memory has no instances");
    REFUSED("disk(vda every 1s", "disk(vda every 1s", THE_FORM);
    REFUSED("disk() every 1s", "disk() every 1s", THE_FORM);
}

TEST(test_too_much)
{
    char text[4000] = "";

    for (int i = 0; i < HOST_RULES_MAX; i++)
        strcat(text, "tcp every 1s,");
    strcat(text, "tcp every 1s");
    CHECK_TEXT(refusal(text), "parameter \"host-filters\": expected at most 32 rules");
    memset(text, 'x', HOST_RULE_BYTES);
    CHECK(strstr(refusal(text), "expected a rule of less than 160 bytes") != NULL);
}

TEST(test_taken)
{
    CHECK_TEXT(refusal(""), "it is taken");
    CHECK(rules.count == 0);
    CHECK_TEXT(refusal(" disk ( every 1s"),
               "parameter \"host-filters\": \"disk ( every 1s\": " THE_FORM);
    CHECK_TEXT(refusal("disk(vda,sd*) every 500ms , run-queue.running>4.5 for 2m,"
                       "disk.read changed 1.5M/s, disk.busy(vdb) < 5 keep 10s"),
               "it is taken");
    CHECK(rules.count == 4);
    CHECK(rules.list[0].kind == HOST_DISK && rules.list[0].every_ns == 500 * MS);
    CHECK_TEXT(rules.list[0].instances, "vda,sd*");
    CHECK(rules.list[1].kind == HOST_RUN_QUEUE && rules.list[1].verb == HOST_ABOVE);
    CHECK(rules.list[1].amount == 4.5 && rules.list[1].for_ns == 120 * SECOND);
    CHECK_TEXT(rules.list[1].text, "run-queue.running>4.5 for 2m");
    CHECK(rules.list[2].amount == 1.5 * 1024 * 1024 && !rules.list[2].is_relative);
    CHECK(rules.list[3].verb == HOST_BELOW && rules.list[3].keep_ms == 10000);
    CHECK_TEXT(refusal("memory.dirty changed 5%, disk.busy changed 5"), "it is taken");
    CHECK(rules.list[0].is_relative && !rules.list[1].is_relative);
}

/* ---- samples --------------------------------------------------------------------------------- */

static struct host_filter *filter;
static char passed[4096]; /* "INSTANCE@MS " each, with "/PERIOD" if it is not 100 ms */
static char asked[4096];

static void pass(void *context, const struct host_sample *sample)
{
    const size_t length = strlen(passed);

    (void)context;
    snprintf(passed + length, sizeof(passed) - length,
             sample->period_ms == 100 ? "%s@%llu " : "%s@%llu/%u ", sample->instance,
             (unsigned long long)(sample->monotonic / MS), (unsigned)sample->period_ms);
}

static void keep(void *context, int64_t last_ms, const char *why)
{
    const size_t length = strlen(asked);

    (void)context;
    snprintf(asked + length, sizeof(asked) - length, "%lld %s|", (long long)last_ms, why);
}

static void begin(const char *text)
{
    const struct host_filter_callbacks on = {pass, keep, NULL};

    CHECK_TEXT(refusal(text), "it is taken");
    host_filter_free(filter);
    filter = host_filter_new(&rules, &on);
    passed[0] = asked[0] = '\0';
}

static uint64_t generation = 1;

static void take(enum host_kind kind, const char *instance, uint32_t slot, uint64_t at_ms,
                 const char *metric, uint64_t value)
{
    const struct host_definition *definition = host_definition(kind);
    uint64_t values[HOST_METRICS_MAX] = {0};
    struct host_sample sample = {.kind = kind,
                                 .group = definition->name,
                                 .instance = instance,
                                 .monotonic = at_ms * MS,
                                 .period_ms = 100,
                                 .slot = slot,
                                 .generation = generation,
                                 .metrics = definition->metrics,
                                 .values = values,
                                 .count = definition->count};

    for (size_t i = 0; i < definition->count; i++) {
        if (strcmp(definition->metrics[i].name, metric) == 0) {
            values[i] = value;
            sample.present |= UINT64_C(1) << i;
        }
    }
    CHECK(sample.present || !*metric);
    host_filter_take(filter, &sample);
}

/* Takes a sample: until at_ms, vda was busy for busy_ms. */
static void disk(uint64_t at_ms, uint64_t busy_ms)
{
    take(HOST_DISK, "vda", 7, at_ms, "system.disk.io_time", busy_ms * MS);
}

static void dirty(uint64_t at_ms, uint64_t bytes)
{
    take(HOST_MEMORY, "", 9, at_ms, "system.linux.memory.dirty", bytes);
}

TEST(test_no_rule)
{
    begin("");
    disk(100, 0);
    dirty(100, 0);
    disk(200, 0);
    CHECK_TEXT(passed, "vda@100 @100 vda@200 ");
    begin("memory every 10s");
    disk(100, 0);
    dirty(100, 0);
    dirty(200, 0);
    disk(200, 0);
    CHECK_TEXT(passed, "vda@100 @100/10000 vda@200 ");
    CHECK(host_filter_counts(filter).passed == 3 && host_filter_counts(filter).held_back == 1);
}

TEST(test_every)
{
    begin("disk(vd*) every 300ms");
    for (uint64_t t = 100; t <= 1000; t += 100) {
        disk(t + (t % 200 ? 9 : 0), 0); /* the sampler's time is not exact */
        take(HOST_DISK, "sda", 8, t, "", 0);
    }
    CHECK_TEXT(passed, "vda@109/300 sda@100 sda@200 sda@300 vda@400/300 sda@400 sda@500 sda@600 "
                       "vda@709/300 sda@700 sda@800 sda@900 vda@1000/300 sda@1000 ");
}

TEST(test_changed)
{
    begin("memory.dirty changed 10%");
    dirty(100, 1000);
    dirty(200, 1100); /* exactly 10 % is not more */
    dirty(300, 1101); /* compared with the last recorded sample; the sample before passes, too */
    dirty(400, 1200);
    dirty(500, 900);
    dirty(600, 990);
    CHECK_TEXT(passed, "@100 @200 @300 @400 @500 ");
    CHECK(host_filter_counts(filter).passed == 5 && host_filter_counts(filter).held_back == 1);

    /* in the view's unit; nothing was recorded for a minute */
    begin("memory.dirty changed 10K");
    dirty(100, 0);
    for (uint64_t t = 1000; t <= 130000; t += 1000)
        dirty(t, 10 * FILTER_KIB);
    CHECK_TEXT(passed, "@100 @61000 @121000 ");
    dirty(131000, 10 * FILTER_KIB + 1);
    dirty(132000, 20 * FILTER_KIB + 1);
    CHECK_TEXT(passed, "@100 @61000 @121000 @131000 @132000 ");

    /* a counter by its growth */
    begin("disk.busy changed 20");
    disk(100, 0);
    disk(200, 0);  /* 0 %, the first known value */
    disk(300, 19); /* 19 % */
    disk(400, 40); /* 21 % */
    disk(500, 60); /* 20 % */
    CHECK_TEXT(passed, "vda@100 vda@200 vda@300 vda@400 ");
    disk(600, 0); /* the counter began again: not known, which is a change */
    disk(700, 0);
    CHECK_TEXT(passed, "vda@100 vda@200 vda@300 vda@400 vda@500 vda@600 vda@700 ");
}

TEST(test_threshold)
{
    begin("disk.busy > 95% for 300ms");
    disk(100, 0);
    disk(200, 100);
    disk(300, 200);
    disk(400, 300); /* since 100 */
    disk(500, 400);
    disk(600, 490); /* 90 % */
    disk(700, 590);
    disk(800, 690);
    disk(900, 600); /* the counter began again: the 300 ms begin here */
    disk(1000, 700);
    disk(1100, 800);
    disk(1200, 900);
    CHECK_TEXT(passed, "vda@100 vda@300 vda@400 vda@500 vda@1100 vda@1200 ");

    /* a gauge's condition holds from its first sample */
    begin("memory.dirty < 1K for 200ms");
    dirty(100, 0);
    dirty(200, 0);
    dirty(300, 0);
    CHECK_TEXT(passed, "@100 @200 @300 ");

    /* either threshold, but not more often than every 200 ms */
    begin("disk.busy > 95%, disk.queue > 4, disk every 200ms");
    disk(100, 0);
    for (uint64_t t = 200; t < 700; t += 100)
        disk(t, t - 100);
    CHECK_TEXT(passed, "vda@100/200 vda@300/200 vda@500/200 ");
}

TEST(test_keep)
{
    begin("disk.busy > 95% for 200ms keep 1s");
    disk(100, 0);
    disk(200, 100);
    CHECK_TEXT(asked, "");
    disk(300, 198);
    CHECK_TEXT(asked, "1000 disk.busy > 95% for 200ms keep 1s: vda 98%|");
    disk(400, 298); /* the threshold still holds: no second request */
    disk(500, 300); /* it does not hold any more */
    disk(600, 400);
    disk(700, 500); /* again, but those seconds were kept already */
    CHECK_TEXT(asked, "1000 disk.busy > 95% for 200ms keep 1s: vda 98%|");
    disk(1200, 1000);
    disk(1300, 1100);
    CHECK_TEXT(asked, "1000 disk.busy > 95% for 200ms keep 1s: vda 98%|"
                      "1000 disk.busy > 95% for 200ms keep 1s: vda 100%|");
    CHECK(host_filter_counts(filter).crossings == 2);
    /* a rule with `keep` passes every sample */
    CHECK_TEXT(passed,
               "vda@100 vda@200 vda@300 vda@400 vda@500 vda@600 vda@700 vda@1200 vda@1300 ");

    /* one request while the threshold holds */
    begin("disk.busy > 95% keep 200ms");
    for (uint64_t t = 100; t <= 1000; t += 100)
        disk(t, t);
    CHECK_TEXT(asked, "200 disk.busy > 95% keep 200ms: vda 100%|");

    /* each instance by itself; a name of any bytes */
    begin("disk.busy > 95% keep 1s");
    take(HOST_DISK, "a\n\x1b[1m\xff", 1, 100, "system.disk.io_time", 0);
    take(HOST_DISK, "b", 2, 100, "system.disk.io_time", 0);
    take(HOST_DISK, "a\n\x1b[1m\xff", 1, 200, "system.disk.io_time", 100 * MS);
    take(HOST_DISK, "b", 2, 200, "system.disk.io_time", 100 * MS);
    CHECK_TEXT(asked, "1000 disk.busy > 95% keep 1s: a??[1m? 100%|"
                      "1000 disk.busy > 95% keep 1s: b 100%|");

    /* a value that is no percentage has the unit of its view */
    begin("memory.dirty > 1K keep 1s");
    dirty(100, 2048);
    CHECK_TEXT(asked, "1000 memory.dirty > 1K keep 1s: 2048 By|");
}

/* Another disk in the same slot does not inherit the state. */
TEST(test_another)
{
    begin("disk.busy > 95%");
    disk(100, 0);
    disk(200, 0);
    generation++;
    disk(300, 100);
    disk(400, 100);
    CHECK_TEXT(passed, "vda@100 vda@300 ");

    /* an impossible slot is ignored */
    take(HOST_DISK, "vdz", HOST_SLOTS, 500, "", 0);
    CHECK_TEXT(passed, "vda@100 vda@300 vdz@500 ");
}

CHECK_MAIN_WITH((void)0, host_filter_free(filter))
