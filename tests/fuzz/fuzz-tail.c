/*
 * Fuzzes the rules of tail sampling. Any bytes are rules or an error that names the line. The
 * reason of a kept random trace is a line of the rules. Other rules of the same text give the same
 * reason.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/model/tail.h"
#include "babeltrace-plugin/model/statistics.h"

#define TAIL_NAMES 6

static struct fuzz source;
static struct names *names;
static struct statistics *statistics;
static struct trace_model model;

/* Words with a meaning, because bytes alone hardly ever form one. */
static const char *const words[] = {"error", "rare",    "tag",   "incomplete", ">",   "1/",  "p99",
                                    "20ms",  "1s",      "3us",   "a",          "b*",  "a:c", ":c",
                                    "*",     "\"a b\"", "#",     "7",          "k=v", "k",   "p",
                                    "[a",    "0",       "1e300", "p99.9",      "1/1", "1/3", "\\"};

static size_t take_rules(char *text, size_t room)
{
    size_t length = 0;

    for (uint64_t left = take(&source, 1) % 24; left && length + 40 < room; left--) {
        const uint64_t choice = take(&source, 1);
        const size_t which = choice % (sizeof(words) / sizeof(words[0]) + 4);

        if (which < sizeof(words) / sizeof(words[0]))
            length += (size_t)snprintf(text + length, room - length, "%s", words[which]);
        else
            text[length++] = (char)take(&source, 1);
        text[length++] = choice & 128 ? '\n' : ' ';
    }
    return length;
}

static uint32_t take_name(void)
{
    static const char *const known[TAIL_NAMES] = {"", "a", "b", "c", "a b", "[a"};

    return names_id(names, text_of(known[take(&source, 1) % TAIL_NAMES]));
}

static void take_trace(void)
{
    trace_model_clear(&model);
    for (uint64_t left = take(&source, 1) % 6; left; left--) {
        const struct trace_span span = {
            .id = take(&source, 1) % 8 + 1,
            .parent_id = take(&source, 1) % 8,
            .start_ns = (int64_t)take(&source, 4),
            .duration_ns = (int64_t)take(&source, 4),
            .service = take_name(),
            .name = take_name(),
            .is_error = take(&source, 1) < 64,
        };

        REQUIRE(trace_model_add(&model, &span));
    }
    REQUIRE(trace_model_link(&model));
}

static bool has_tag(void *context, const struct trace_span *span, struct text key, const char *glob)
{
    (void)context;
    REQUIRE(key.length && strlen(key.data) == key.length);
    return span->id % 2 && (!glob || strlen(glob) % 2);
}

static const char *ask(struct tail_rules *rules, uint64_t id)
{
    const struct tail_trace trace = {.model = &model, .trace_id = id, .has_tag = has_tag};

    return tail_rules_fit(rules, &trace, statistics);
}

static void check_error(const struct error *error)
{
    REQUIRE(strncmp(error->text, "\"F\", line ", 10) == 0);
}

static void check_reason(struct text rules, const char *reason)
{
    const size_t length = strlen(reason);

    REQUIRE(length && memmem(rules.data, rules.length, reason, length));
    REQUIRE(!strchr(reason, '\n'));
}

static void sample(struct tail_rules *rules, struct tail_rules *others, struct text text)
{
    while (source.at < source.end) {
        const uint64_t id = take(&source, 2);
        const char *reason, *again;

        take_trace();
        reason = ask(rules, id);
        again = ask(others, id);
        REQUIRE(!reason == !again && (!reason || strcmp(reason, again) == 0));
        if (reason)
            check_reason(text, reason);
        REQUIRE(statistics_add_trace(statistics, &model));
        if (id % 16 == 0)
            statistics_begin_period(statistics);
    }
}

static void set_up(void)
{
    if (names)
        return;
    names = names_new(100, 1000);
    statistics = statistics_new(names);
    REQUIRE(statistics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];
    struct error error = {""};
    struct text rules_text;
    struct tail_rules *rules, *others;

    random_number = hash_of(data, size);
    set_up();
    source = (struct fuzz){data, data + size};
    rules_text = (struct text){text, take_rules(text, sizeof(text))};
    rules = tail_rules_parse(rules_text, "F", &error);
    if (!rules) {
        check_error(&error);
        return 0;
    }
    others = tail_rules_parse(rules_text, "F", &error);
    REQUIRE(others);
    sample(rules, others, rules_text);
    tail_rules_free(rules);
    tail_rules_free(others);
    statistics_clear(statistics);
    return 0;
}
