/*
 * Sampling policies: their texts, their decisions about traces, and the file with a policy while
 * the program runs. Slow rules use the same code for their file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/base/periodic.h"
#include "libblkin/policy/policy.h"
#include "libblkin/policy/sampling.h"

#include <blkin.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define BITS (UINT64_C(1) << 56) /* number of values of the id's bits that a ratio uses */

static struct blkin_decision decide(const char *name, uint64_t trace_id)
{
    return blkin_sampling_decide(name, strlen(name), trace_id);
}

TEST(test_texts)
{
    static const char *const right[] = {
        "always",
        "never",
        " always , scrub :\tnever, deep scrub*: never ,severity=err\t",
        "ratio=0",
        "ratio=1",
        "ratio=0.000001",
        "rate=0.001",
        "rate=1000000000",
        "always,*:never",
        "always,severity=emerg",
        "always,severity=debug,usage=0",
        "never,a:b:ratio=0.5",
        "always,usage=3",
        /* a name of 63 characters */
        "always,aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg:never",
        "always,aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg*:never",
    };
    static const char *const wrong[] = {
        "",
        " ",
        "sometimes",
        "Always",
        "always never",
        "always,",
        "always, ",
        ",always",
        "always,,scrub:never",
        "ratio",
        "ratio=",
        "ratio=1.000001",
        "ratio=-0.1",
        "ratio=0.5x",
        "ratio=0,5",
        "ratio= .5",
        "ratio=0x1p-2",
        "ratio=nan",
        "rate=0",
        "rate=-1",
        "rate=inf",
        "rate=1e3",
        "rate=0.0009",
        "rate=1000000001",
        "always,scrub",
        "always,scrub:",
        "always,:never",
        "always, :never",
        "always,scrub:sometimes",
        "severity=err",
        "usage=1",
        "always,severity=loud",
        "always,severity=",
        "always,severity=err:never",
        "always,usage=4",
        "always,usage=",
        "always,usage=12",
        "always,aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg:never",
    };

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        CHECK(blkin_set_sampling(right[i]) == 0);
        CHECK_TEXT(blkin_sampling_text(), right[i]);
    }
    CHECK(blkin_set_sampling("never") == 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (blkin_set_sampling(wrong[i]) != -EINVAL)
            CHECK_TEXT(wrong[i], "refused");
        CHECK_TEXT(blkin_sampling_text(), "never");
    }
    CHECK(blkin_set_sampling(NULL) == -EINVAL);
}

/* The maximum number of rules, and one rule more. */
TEST(test_many_rules)
{
    char text[4096] = "always";

    for (int i = 0; i < 32; i++)
        (void)sprintf(text + strlen(text), ",n%d:never", i);
    CHECK(blkin_set_sampling(text) == 0);
    CHECK(!decide("n31", 1).sampled && decide("n32", 1).sampled);
    (void)strcat(text, ",n32:never");
    CHECK(blkin_set_sampling(text) == -EINVAL);
    CHECK(decide("n32", 1).sampled);
    memset(text, ' ', 1024);
    memcpy(text + 1024, "never", sizeof("never"));
    CHECK(blkin_set_sampling(text) == -EINVAL && blkin_set_sampling(text + 6) == 0);
}

TEST(test_decisions)
{
    CHECK(blkin_set_sampling("always") == 0);
    CHECK(decide("a", 0).sampled && decide("a", 0).ppm == 1000000);
    CHECK(blkin_set_sampling("never") == 0);
    CHECK(!decide("a", 0).sampled && decide("a", 0).ppm == 0);
    CHECK(blkin_set_sampling("ratio=0.25") == 0);
    CHECK(decide("a", 0).sampled && decide("a", BITS / 4 - 1).sampled);
    CHECK(!decide("a", BITS / 4).sampled && !decide("a", BITS - 1).sampled);
    CHECK(decide("a", BITS).sampled); /* the high bits do not matter */
    CHECK(decide("a", BITS / 2).ppm == 250000 && decide("a", 0).ppm == 250000);
    CHECK(blkin_set_sampling("ratio=0") == 0 && !decide("a", 0).sampled);
    CHECK(blkin_set_sampling("ratio=1") == 0 && decide("a", BITS - 1).sampled);
    CHECK(decide("a", 0).ppm == 1000000);
}

TEST(test_names)
{
    CHECK(blkin_set_sampling("always,scrub:never,osd*:never,osdmap:always,read*:ratio=0") == 0);
    CHECK(!decide("scrub", 1).sampled);
    CHECK(decide("scru", 1).sampled && decide("scrubs", 1).sampled);
    CHECK(!decide("osd", 1).sampled && !decide("osd.1", 1).sampled);
    CHECK(decide("os", 1).sampled);
    CHECK(!decide("osdmap", 1).sampled); /* the first that fits */
    CHECK(!decide("reads", 1).sampled && decide("", 1).sampled);
    CHECK(blkin_set_sampling("always,*:never") == 0);
    CHECK(!decide("", 1).sampled && !decide("a", 1).sampled);
    CHECK(blkin_set_sampling(" always , scrub :\tnever, deep scrub*: never ") == 0);
    CHECK(!decide("scrub", 1).sampled && !decide("deep scrub 7", 1).sampled);
    CHECK(decide("deep", 1).sampled);
}

/* A rate: a burst passes, and then nothing for a while. */
TEST(test_rate)
{
    unsigned sampled = 0;

    CHECK(blkin_set_sampling("rate=0.001") == 0);
    for (int i = 0; i < 1000; i++)
        sampled += decide("a", 1).sampled;
    CHECK(sampled == 1);
    CHECK(decide("a", 1).ppm == 0); /* the share is not known */
}

/* A thread that is delayed after its reading of the clock gets no second burst. */
TEST(test_late)
{
    const uint64_t second = 1000000000, now = 1000 * second, burst = second / 10;
    struct blkin_rate rate = {.period_ns = second / 100};
    unsigned within = 0;

    while (blkin_within_rate(&rate, burst, now))
        within++;
    CHECK(within == 11);
    for (uint64_t late = 1; late < second; late *= 2)
        CHECK(!blkin_within_rate(&rate, burst, now - late));
    CHECK(blkin_within_rate(&rate, burst, now - 2 * second)); /* the clock has stepped back */
}

TEST(test_severity)
{
    CHECK(blkin_set_sampling("always,severity=notice") == 0);
    CHECK(blkin_least_severity == BLKIN_NOTICE);
    CHECK(blkin_set_sampling("always,severity=emerg") == 0);
    CHECK(blkin_least_severity == BLKIN_EMERG);
    CHECK(blkin_set_sampling("always") == 0);
    CHECK(blkin_least_severity == BLKIN_DEBUG);
    CHECK(blkin_set_usage(-1) == -EINVAL && blkin_set_usage(BLKIN_USAGE_LEVEL_MAX + 1) == -EINVAL);
    CHECK(blkin_set_usage(BLKIN_USAGE_LEVEL_MAX) == 0 && blkin_set_usage(0) == 0);
}

static char file_path[256];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Does the periodic work. Returns the text of the policy that is then in force. */
static const char *refreshed(void)
{
    blkin_policy_refresh(&blkin_sampling_source);
    return blkin_sampling_text();
}

/* A file that is wrong or missing changes nothing. */
TEST(test_file)
{
    char other[sizeof(file_path) + 4];

    CHECK(blkin_set_sampling("always") == 0);
    CHECK_TEXT(refreshed(), "always");
    write_file(file_path, "never\r\nalways\n");
    CHECK_TEXT(refreshed(), "never");
    (void)snprintf(other, sizeof(other), "%s.new", file_path);
    write_file(other, "ratio=0.5\n");
    CHECK(rename(other, file_path) == 0);
    CHECK_TEXT(refreshed(), "ratio=0.5");
    write_file(file_path, "nonsense\n");
    CHECK_TEXT(refreshed(), "ratio=0.5");
    CHECK(remove(file_path) == 0);
    CHECK_TEXT(refreshed(), "ratio=0.5");
    write_file(file_path, "rate=7");
    CHECK_TEXT(refreshed(), "rate=7");
    CHECK(remove(file_path) == 0);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");

    (void)snprintf(file_path, sizeof(file_path), "%s/sampling", folder ? folder : "/tmp");
    setenv("BLKIN_LTTNG", "no", 1);
    setenv("BLKIN_SAMPLING_FILE", file_path, 1);
    blkin_init();
    check_run();
    return check_status();
}
