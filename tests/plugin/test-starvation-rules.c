/*
 * Each allocation of pairing fails in turn, once or from then on: nothing crashes or leaks, the
 * account holds, and what is missing in the spans is told, so that the trace is read again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rules_driver.h"
#include "starvation/starve.h"

#define LONG_TEXT 300 /* bytes: more than what is open has room for at first */

static const char rules[] = "[lookup symbol]\nevent = t:name\nkey = k\nvalue = text\n"
                            "[span outer]\nbegin = t:enter\nend = t:exit\n"
                            "[span {symbol(k)}]\nbegin = t:begin\nat = t:at as stage\n"
                            "mark = t:at as mark\nend = t:end\nkey = k\nparent = thread\n"
                            "tags = text\nservice = svc-{k}\n"
                            "[span whole]\nevent = t:whole with d us\ntags = all\n";

/* What came out. */
struct sum {
    uint64_t spans;
    uint64_t bytes; /* of their logs */
    uint64_t orphans;
};

static struct sum sum;

static void deliver_sum(void *context, const struct span *span)
{
    (void)context;
    sum.spans++;
    sum.bytes += span->log_length;
    sum.orphans += !span->parent_id;
}

static void give(struct driver *driver, const char *name, int64_t k, int64_t time_ns)
{
    char text[LONG_TEXT + 1];

    memset(text, 'x', LONG_TEXT);
    text[LONG_TEXT] = '\0';
    if (!driver_event(driver, name))
        return; /* no memory for its class: whoever reads a trace tells that */
    driver_set(driver, "k", k);
    driver_set(driver, "d", 5);
    driver_set_text(driver, "text", text);
    driver_give(driver, time_ns, 1, 2 + k);
}

static void work(struct driver *driver)
{
    int64_t now_ns = 1000000;

    for (int64_t k = 0; k < 3; k++) {
        give(driver, "t:name", k, now_ns++);
        give(driver, "t:enter", k, now_ns++);
        give(driver, "t:begin", k, now_ns++);
        for (int i = 0; i < 20; i++)
            give(driver, "t:at", k, now_ns++);
        give(driver, "t:end", k, now_ns++);
        give(driver, "t:exit", k, now_ns++);
        give(driver, "t:whole", k, now_ns++);
    }
}

static void check_account(const struct driver *driver)
{
    const struct rule_counts counts = pairing_counts(driver->rules);

    CHECK(counts.begins == counts.spans + counts.shorter + counts.begun_again + counts.dropped +
                               counts.unmatched + counts.unusable + counts.open);
}

static uint64_t run_once(uint64_t fail_at, bool and_after, struct sum *whole, uint64_t *count)
{
    static const char *const names[] = {"t:name", "t:enter", "t:begin", "t:at",
                                        "t:end",  "t:exit",  "t:whole"};
    struct driver driver;
    uint64_t failed;

    starve = (struct starve){.fail_at = 0};
    sum = (struct sum){.spans = 0};
    CHECK(driver_open(&driver, rules, 100));
    driver.chain.deliver = deliver_sum;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(driver_event(&driver, names[i]));
    give(&driver, "t:exit", 9, 1); /* then the host is known */
    starve.count = 0;
    starve.fail_at = fail_at;
    starve.and_after = and_after;
    work(&driver);
    *count = starve.count;
    failed = starve.failed;
    check_account(&driver);
    if (!fail_at)
        *whole = sum;
    CHECK(sum.spans <= whole->spans);
    starve.fail_at = 0;
    driver_close(&driver);
    CHECK(starve.live == 0);
    return failed;
}

int main(void)
{
    struct sum whole;
    uint64_t count, ignored;

    (void)run_once(0, false, &whole, &count);
    CHECK(count > 10 && whole.spans == 69 && whole.orphans == 6);
    for (uint64_t fail_at = 1; fail_at <= count && !check_failures; fail_at++) {
        CHECK(run_once(fail_at, false, &whole, &ignored) == 1);
        CHECK(run_once(fail_at, true, &whole, &ignored) >= 1);
    }
    printf("%d allocations, %d spans\n", (int)count, (int)whole.spans);
    return check_status();
}
