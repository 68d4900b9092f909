/*
 * Rules of slow spans: their texts, and the rule that fits a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/policy/slow_rules.h"

static struct blkin_slow_rules rules;

static void parse(const char *text)
{
    const char *wrong = blkin_slow_parse(&rules, text);

    CHECK_TEXT(wrong ? wrong : "", "");
}

/* Returns the number of the rule that fits; -1: none. */
static int find(const char *service, const char *name, uint64_t ns, bool has_failed)
{
    const unsigned found = blkin_slow_find(&rules, service, name, ns, has_failed);

    return found == BLKIN_SLOW_NO_RULE ? -1 : (int)found;
}

TEST(test_durations)
{
    static const struct {
        const char *text;
        uint64_t ns; /* the longest duration that is not slow */
    } cases[] = {
        {"*>0ns", 0},
        {"*>1ns", 1},
        {"*>1.4ns", 1},
        {"*>1.5ns", 2},
        {"*>20us", 20000},
        {"*>20 us", 20000},
        {" * > 20ms ", 20 * MS},
        {"*>0.5s", 500 * MS},
        {"*>1000000000s", UINT64_C(1000000000) * 1000 * MS},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse(cases[i].text);
        CHECK(rules.count == 1 && rules.least_ns == cases[i].ns + 1);
        CHECK(find("a", "b", cases[i].ns, true) == -1);
        CHECK(find("a", "b", cases[i].ns + 1, false) == 0);
    }
}

TEST(test_wrong)
{
    static const char *const wrong[] = {
        "*",       "*>",        "*>20",         "*>ms",          "*>20m",       ">20ms",
        ":a>20ms", "a:>20ms",   "*>-1ms",       "*>1000000001s", "max=0/s",     "max=50",
        "max=/s",  "max=50/ms", "max=0.0009/s", "max=1000001/s", "a:b:error:c", ":error",
        "wirte",
    };
    char text[8192];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *said;

        (void)snprintf(text, sizeof(text), "*>1ms, %s ,error", wrong[i]);
        said = blkin_slow_parse(&rules, text);
        CHECK_TEXT(said ? said : "nothing is wrong", wrong[i]);
    }
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK(blkin_slow_parse(&rules, text) == text);
    *text = '\0';
    for (unsigned i = 0; i <= BLKIN_SLOW_RULES_MAX; i++)
        (void)snprintf(text + strlen(text), 16, "%sn%u>1ms", i ? "," : "", i);
    CHECK_TEXT(blkin_slow_parse(&rules, text), "n32>1ms");
    *strrchr(text, ',') = '\0';
    parse(text);
    CHECK(rules.count == BLKIN_SLOW_RULES_MAX && find("a", "n31", 2 * MS, false) == 31);
    CHECK_TEXT(rules.rules[31].text, "n31>1ms");
}

TEST(test_none)
{
    static const char *const texts[] = {"", "  "};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        parse(texts[i]);
        CHECK(rules.count == 0 && rules.least_ns == UINT64_MAX);
        CHECK(rules.cap_period_ns == BLKIN_SLOW_CAP_PERIOD_NS);
        CHECK(find("a", "b", UINT64_MAX, true) == -1);
    }
}

TEST(test_caps)
{
    parse("error, max=50/s");
    CHECK(rules.cap_period_ns == 20 * MS && rules.least_ns == UINT64_MAX && rules.count == 1);
    parse("max=0.001/s");
    CHECK(rules.cap_period_ns == 1000 * SECOND && rules.count == 0);
    parse("max=3/s, max=1000000/s");
    CHECK(rules.cap_period_ns == 1000);
}

TEST(test_matching)
{
    static const struct blkin_slow_rule expected[] = {
        {"osd*:write>20ms", "osd*", "write", 20 * MS + 1, false},
        {"scrub>10s", "*", "scrub", 10 * SECOND + 1, false},
        {"osd.1 : error", "osd.1", "*", 0, true},
        {"*>100ms", "*", "*", 100 * MS + 1, false},
        {"error", "*", "*", 0, true},
        {"a : b :\terror", "a", "b", 0, true},
    };

    parse("osd*:write>20ms, scrub>10s, osd.1 : error, *>100ms, error,\ta : b :\terror");
    CHECK(rules.least_ns == 20 * MS + 1 && rules.count == 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_TEXT(rules.rules[i].text, expected[i].text);
        CHECK_TEXT(rules.rules[i].service, expected[i].service);
        CHECK_TEXT(rules.rules[i].name, expected[i].name);
        CHECK(rules.rules[i].least_ns == expected[i].least_ns);
        CHECK(rules.rules[i].is_of_error == expected[i].is_of_error);
    }
    CHECK(find("osd.1", "write", 20 * MS + 1, false) == 0);
    CHECK(find("osd.1", "write", 20 * MS, false) == -1);
    CHECK(find("mon", "write", 50 * MS, false) == -1); /* another service: rule 3 decides */
    CHECK(find("mon", "write", 101 * MS, false) == 3);
    CHECK(find("osd", "writes", 101 * MS, false) == 3);
    /* the first duration rule whose globs fit decides, even if the span is slow by a later rule */
    CHECK(find("mon", "scrub", 200 * MS, false) == -1);
    CHECK(find("mon", "scrub", 10001 * MS, false) == 1);
    /* rules of errors are separate */
    CHECK(find("osd.1", "read", MS, true) == 2);
    CHECK(find("osd.2", "read", MS, true) == 4);
    CHECK(find("mon", "scrub", 200 * MS, true) == 4);
    CHECK(find("osd.1", "write", 21 * MS, true) == 0);
    parse("*>3ms, a>1ms, b>2ms");
    CHECK(rules.least_ns == MS + 1);
    parse("a:b:error, c : error");
    CHECK(find("a", "b", 0, true) == 0 && find("c", "b", 0, true) == 1);
    CHECK(find("a", "c", 0, true) == -1 && find("a", "b", 0, false) == -1);
}

CHECK_MAIN
