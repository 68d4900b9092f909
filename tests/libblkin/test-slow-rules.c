/*
 * Rules of slow requests: what a text means, what is refused and which part of it is to blame,
 * which rule fits a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "libblkin/base/debug.c"
#include "libblkin/policy/policy.c"
#include "libblkin/policy/slow_rules.c"

#include "check.h"

static struct blkin_slow_rules rules;

static void set(const char *text)
{
    const char *wrong = blkin_slow_parse(&rules, text);

    if (wrong) {
        fprintf(stderr, "refused: \"%s\", because of \"%s\"\n", text, wrong);
        check_failures++;
    }
}

/* The text of the rule that fits, or "". */
static const char *fitting(const char *service, const char *name, uint64_t duration_ns, bool failed)
{
    const unsigned rule = blkin_slow_find(&rules, service, name, duration_ns, failed);

    return rule == BLKIN_SLOW_NO_RULE ? "" : rules.rules[rule].text;
}

static void test_texts(void)
{
    set("osd*:write>20ms, *>100ms, error, max=50/s");
    CHECK(rules.count == 3 && rules.least_ns == 20000001 && rules.cap_period_ns == 20000000);
    CHECK_TEXT(rules.rules[0].text, "osd*:write>20ms");
    CHECK_TEXT(rules.rules[0].service, "osd*");
    CHECK_TEXT(rules.rules[0].name, "write");
    CHECK_TEXT(rules.rules[1].service, "*");
    CHECK_TEXT(rules.rules[2].text, "error");

    set("");
    CHECK(rules.count == 0 && rules.least_ns == UINT64_MAX);
    set(" \t ");
    CHECK(rules.count == 0);
    set("error"); /* nothing is slow */
    CHECK(rules.least_ns == UINT64_MAX && rules.cap_period_ns == BLKIN_SLOW_CAP_PERIOD_NS);
    set("max=0.5/s");
    CHECK(rules.count == 0 && rules.cap_period_ns == 2000000000);
}

static void test_durations(void)
{
    static const struct {
        const char *text;
        uint64_t above_ns;
    } durations[] = {
        {"*>0ns", 0},
        {"*>15ns", 15},
        {"*>7us", 7000},
        {"*>1.5ms", 1500000},
        {"*>.25s", 250000000},
        {"*>3600s", UINT64_C(3600000000000)},
        {" * > 20 ms ", 20000000},
    };

    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        set(durations[i].text);
        CHECK(rules.least_ns == durations[i].above_ns + 1);
        CHECK_TEXT(fitting("s", "n", durations[i].above_ns, false), "");
        CHECK(fitting("s", "n", durations[i].above_ns + 1, false)[0]);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *text, *wrong;
    } texts[] = {
        {"20ms", "20ms"},
        {"*>", "*>"},
        {"*>20", "*>20"},
        {"*>ms", "*>ms"},
        {"*>20m", "*>20m"},
        {"*>20ms ago", "*>20ms ago"},
        {"*>-1ms", "*>-1ms"},
        {"*>1e3ms", "*>1e3ms"},
        {"*>9999999999999s", "*>9999999999999s"},
        {">20ms", ">20ms"},
        {":write>20ms", ":write>20ms"},
        {"osd:>20ms", "osd:>20ms"},
        {"errors", "errors"},
        {":error", ":error"},
        {"osd::error", "osd::error"},
        {"max=50", "max=50"},
        {"max=/s", "max=/s"},
        {"max=0/s", "max=0/s"},
        {"max=1000001/s", "max=1000001/s"},
        {"max=-1/s", "max=-1/s"},
        {"*>1ms,", ""},
        {",*>1ms", ""},
        {"*>1ms,,error", ""},
        {"*>1ms, wirte>2, error", "wirte>2"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *wrong = blkin_slow_parse(&rules, texts[i].text);

        CHECK_TEXT(wrong ? wrong : "(not refused)", texts[i].wrong);
    }
}

static void test_limits(void)
{
    char text[BLKIN_POLICY_TEXT_MAX + 1] = "";

    for (int i = 0; i < BLKIN_SLOW_RULES_MAX; i++)
        strcat(text, i ? ",error" : "error");
    set(text);
    CHECK(rules.count == BLKIN_SLOW_RULES_MAX);
    strcat(text, ",max=5/s"); /* is none */
    set(text);
    strcat(text, ",error");
    CHECK(blkin_slow_parse(&rules, text));

    memset(text, 'a', sizeof(text));
    strcpy(text + BLKIN_POLICY_TEXT_MAX - 5, ">1ms");
    set(text);
    memset(text, 'a', sizeof(text));
    strcpy(text + BLKIN_POLICY_TEXT_MAX - 4, ">1ms");
    CHECK(blkin_slow_parse(&rules, text));
}

static void test_globs(void)
{
    static const struct {
        const char *glob, *text;
        bool fits;
    } cases[] = {
        {"write", "write", true},
        {"write", "writes", false},
        {"write", "Write", false},
        {"write", "", false},
        {"*", "", true},
        {"*", "any", true},
        {"w*", "write", true},
        {"w*", "rewrite", false},
        {"*write", "rewrite", true},
        {"*write", "writer", false},
        {"a*b*c", "a1b2b3c", true},
        {"a*b*c", "a1b2b3d", false},
        {"*aab", "aaab", true},
        {"**", "x", true},
        {"osd.?", "osd.3", true},
        {"osd.?", "osd.12", false},
        {"osd.?", "osd.", false},
        {"osd.[12]", "osd.1", false}, /* no such thing */
        {"*?", "", false},
        {"a\xc3*", "a\xc3\xa4", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (blkin_glob_fits(cases[i].glob, cases[i].text) != cases[i].fits) {
            fprintf(stderr, "%s: %s\n", cases[i].glob, cases[i].text);
            check_failures++;
        }
    }
}

/* It is what it says, not what takes 2^64 steps. */
static void test_hard_glob(void)
{
    char text[121];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK(!blkin_glob_fits("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

#define MS UINT64_C(1000000)

static void test_order(void)
{
    set("osd*:write>20ms, scrub>10s, *>100ms, mon:error, *:read:error");
    CHECK_TEXT(fitting("osd.3", "write", 21 * MS, false), "osd*:write>20ms");
    CHECK_TEXT(fitting("mds.a", "write", 21 * MS, false), "");
    CHECK_TEXT(fitting("mds.a", "write", 101 * MS, false), "*>100ms");
    /* the first whose globs fit decides: what may take long is said first */
    CHECK_TEXT(fitting("osd.3", "scrub", 9000 * MS, false), "");
    CHECK_TEXT(fitting("osd.3", "scrub", 11000 * MS, false), "scrub>10s");
    /* errors are a matter of their own */
    CHECK_TEXT(fitting("mon", "scrub", 1 * MS, true), "mon:error");
    CHECK_TEXT(fitting("osd.3", "scrub", 1 * MS, true), "");
    CHECK_TEXT(fitting("osd.3", "read", 1 * MS, true), "*:read:error");
    CHECK_TEXT(fitting("mon", "read", 101 * MS, true), "*>100ms");
    set("error, *>100ms");
    CHECK_TEXT(fitting("mon", "read", 101 * MS, true), "error");
    /* the service ends at the first colon */
    set("*:a:b>1ms");
    CHECK_TEXT(fitting("s", "a:b", 2 * MS, false), "*:a:b>1ms");
    set("a->b>1ms");
    CHECK_TEXT(fitting("s", "a->b", 2 * MS, false), "a->b>1ms");
    set("error>1ms"); /* a span of that name */
    CHECK_TEXT(fitting("s", "error", 2 * MS, false), "error>1ms");
}

static void test_rate(void)
{
    struct blkin_rate rate = {.period_ns = 100};
    int within = 0;

    for (int i = 0; i < 100; i++) /* at once: a burst and the one that is due */
        within += blkin_within_rate(&rate, 1000, 5000);
    CHECK(within == 11);
    CHECK(blkin_within_rate(&rate, 1000, 5100) && !blkin_within_rate(&rate, 1000, 5100));
    CHECK(blkin_within_rate(&rate, 1000, 10)); /* the clock has stepped back */
}

int main(void)
{
    test_texts();
    test_durations();
    test_refused();
    test_limits();
    test_globs();
    test_hard_glob();
    test_order();
    test_rate();
    return check_status();
}
