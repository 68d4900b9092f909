/*
 * The table of keys: accepted values, messages about others, and suggestions for unknown keys.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/config/keys.h"

static const struct param_rule *rule_of(const char *name)
{
    const int key = key_find(name);

    CHECK(key >= 0);
    return key >= 0 ? key_rule(key) : NULL;
}

TEST(test_values)
{
    static const struct {
        const char *key, *text;
        int64_t value;    /* of a number, a choice or a boolean */
        const char *said; /* part of the error; NULL: the key accepts the text */
    } cases[] = {
        {"retry-us", "1000", 1000, NULL},
        {"retry-us", "3600000000", INT64_C(3600000000), NULL},
        {"retry-us", "+1000", 1000, NULL},
        {"retry-us", "999", 0, "expected 1000 to 3600000000, got 999"},
        {"retry-us", "3600000001", 0, "expected 1000 to 3600000000, got 3600000001"},
        {"retry-us", "-1000", 0, "got -1000"},
        {"retry-us", " 1000", 0, "got \" 1000\""},
        {"retry-us", "4K", 0, "expected 1000 to 3600000000, got \"4K\""},
        {"retry-us", "99999999999999999999", 0, "got"},
        {"ring-bytes", "1M", 1 << 20, NULL},
        {"ring-bytes", "1048576K", 1 << 30, NULL},
        {"ring-bytes", "1048577K", 0, "got 1073742848"},
        {"ring-bytes", "1MM", 0, "or with K, M, G or T, got \"1MM\""},
        {"ring-bytes", "1m", 0, "got \"1m\""},
        {"rings-max-bytes", "1T", INT64_C(1) << 40, NULL},
        {"keep-minute-bytes", "16777216T", 0, "got"}, /* 2^64 */
        {"keep-minute-bytes", "-1T", 0, "got -1"},
        {"subbuf-count", "8", 8, NULL},
        {"subbuf-count", "9", 0, "expected a power of 2, got 9"},
        {"subbuf-count", "0", 0, "expected 2 to 65536, got 0"},
        {"host", "yes", 1, NULL},
        {"host", "TRUE", 1, NULL},
        {"host", "on", 1, NULL},
        {"host", "1", 1, NULL},
        {"host", "no", 0, NULL},
        {"host", "False", 0, NULL},
        {"host", "off", 0, NULL},
        {"host", "0", 0, NULL},
        {"host", "2", 0, "expected yes or no, got \"2\""},
        {"session", "", 0, "expected a text, got nothing"},
        {"session", "\xff", 0, "expected UTF-8"},
        {"deltas", "", 0, NULL}, /* none */
        {"log-level", "debug", 0, "expected one of \"none\", \"error\""},
        {"endpoint", "kafka://a:9092/b", 0, NULL},
        {"endpoint", "http://a:9411", 0, NULL},
        {"endpoint", "http://", 0, "endpoint"},
        {"endpoint", "kafka://", 0, "endpoint"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct param_value value;
        struct error error = {""};
        const bool is_right = key_read(rule_of(cases[i].key), cases[i].text, &value, &error);
        const bool as_expected = is_right == !cases[i].said;

        CHECK(as_expected);
        if (!as_expected)
            fprintf(stderr, "%s=%s: %s\n", cases[i].key, cases[i].text, error.text);
        if (is_right && !value.text)
            CHECK(value.integer == cases[i].value);
        if (!is_right && cases[i].said) {
            CHECK(strstr(error.text, cases[i].key) != NULL);
            if (!strstr(error.text, cases[i].said))
                CHECK_TEXT(error.text, cases[i].said);
        }
    }
}

/* Each key accepts its default, and its table entry has the expected values. */
TEST(test_defaults)
{
    char text[512];

    for (int key = 0; key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);
        struct param_value value;
        struct error error = {""};

        CHECK(key_find(rule->name) == key);
        CHECK(key_is_internal(rule->name) == false);
        key_expected(rule, text, sizeof(text));
        CHECK(*text);
        key_default(rule, text, sizeof(text));
        if (*text)
            CHECK(key_read(rule, text, &value, &error));
        CHECK_TEXT(error.text[0] && !*text ? error.text : "", "");
    }
    CHECK(key_find("no-such-key") == -1);
    key_default(rule_of("retry-us"), text, sizeof(text));
    CHECK_TEXT(text, "50000");
    key_default(rule_of("host"), text, sizeof(text));
    CHECK_TEXT(text, "yes");
    key_default(rule_of("log-level"), text, sizeof(text));
    CHECK_TEXT(text, "warning");
    key_default(rule_of("session"), text, sizeof(text));
    CHECK_TEXT(text, "blkin");
    key_default(rule_of("follow"), text, sizeof(text));
    CHECK_TEXT(text, "");
}

TEST(test_what_was_meant)
{
    static const char *const pairs[][2] = {
        {"retry_us", "retry-us"}, {"rerty-us", "retry-us"}, {"lingerms", "linger-ms"},
        {"hots", "host"},         {"completely-else", ""},  {"live-timer", "live-timer-us"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const char *like = key_like(pairs[i][0]);

        CHECK_TEXT(like ? like : "", pairs[i][1]);
    }
    CHECK_TEXT(key_section_like("agnet"), "agent");
    CHECK_TEXT(key_section_like("lvie"), "live");
    CHECK(key_section_like("somewhere") == NULL);
    CHECK(key_gone("hub") && !key_gone("cluster"));
}

TEST(test_sections)
{
    for (int i = 0; i < KEY_SECTIONS; i++)
        CHECK(key_find_section(key_section(i)) == i);
    CHECK(key_find_section("nowhere") == -1);
    CHECK(key_only_section(key_find("retry-us")) == key_find_section("live"));
    CHECK(key_only_section(key_find("endpoint")) == 0 && key_belongs_to_sink(key_find("endpoint")));
    CHECK(!key_belongs_to_sink(key_find("retry-us")));
    CHECK(key_when(key_find("retry-us")) == KEY_AT_ONCE);
    CHECK(key_when(key_find("relayd")) == KEY_AT_START);
    CHECK(key_when(key_find("session")) == KEY_IN_SESSION);
    CHECK(key_when(key_find("endpoint")) == KEY_AT_ONCE);
    CHECK(key_when(key_find("stats-file")) == KEY_AT_START);
    CHECK(key_is_internal("statistics-file") && key_is_internal("sent-file"));
    CHECK(key_is_internal("from-time") && !key_is_internal("stats-file"));
}

CHECK_MAIN
