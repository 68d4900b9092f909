/*
 * The rules of slow and failed spans of SDKs: which spans match, the limit of alarms, and the file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/otlp/otlp_in.h"
#include "waits.h"

#include <stdlib.h>
#include <unistd.h>

static unsigned alarms, dropped;
static char why[64];
static char path[4096];

static void take_alarm(void *context, const struct otlp_alarm *alarm)
{
    (void)context;
    alarms += alarm->trace_id != 0;
    dropped += alarm->dropped;
    (void)snprintf(why, sizeof(why), "%.*s", (int)alarm->why.length, alarm->why.data);
}

static struct slow_spans slow;
static struct payer sender;

enum verdict { NO_RULE, ALARM, HELD_BACK };

static enum verdict check(enum span_kind kind, uint64_t parent, int64_t duration_ns, bool is_error,
                          const char *name)
{
    const struct otlp_origin origin = {.service = text_of("store")};
    const struct otlp_span span = {.trace_id = 1,
                                   .id = 2,
                                   .parent_id = parent,
                                   .start_ns = 1000,
                                   .end_ns = 1000 + duration_ns,
                                   .name = text_of(name),
                                   .kind = kind,
                                   .is_error = is_error};
    const unsigned rule = slow_spans_find(&slow, &origin, &span);

    sender.alarms.period_ns = slow.rules.cap_period_ns;
    if (rule == BLKIN_SLOW_NO_RULE)
        return NO_RULE;
    return slow_spans_give(&slow, rule, &sender, &span) ? ALARM : HELD_BACK;
}

static void write_rules(const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    slow_spans_refresh(&slow);
}

TEST(which_spans)
{
    (void)snprintf(path, sizeof(path), "%s/slow", getenv("TMPDIR"));
    CHECK(setenv("BLKIN_SLOW_FILE", path, 1) == 0);
    slow.alarm = take_alarm;
    slow_spans_refresh(&slow);
    CHECK(check(SPAN_SERVER, 0, 1000000 * MS, true, "write") == NO_RULE);
    write_rules("store:write>20ms, *>100ms, error\n");
    CHECK(check(SPAN_SERVER, 1, 21 * MS, false, "write") == ALARM);
    CHECK_TEXT(why, "store:write>20ms");
    CHECK(check(SPAN_SERVER, 1, 20 * MS, false, "write") == NO_RULE);
    CHECK(check(SPAN_SERVER, 1, 50 * MS, false, "read") == NO_RULE);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, "read") == ALARM);
    CHECK(check(SPAN_CONSUMER, 1, 101 * MS, false, "read") == ALARM);
    CHECK(check(SPAN_CLIENT, 1, 101 * MS, false, "read") == NO_RULE);
    CHECK(check(SPAN_LOCAL, 1, 101 * MS, false, "read") == NO_RULE);
    CHECK(check(SPAN_PRODUCER, 1, 101 * MS, false, "read") == NO_RULE);
    CHECK(check(SPAN_LOCAL, 0, 101 * MS, false, "read") == ALARM);
    CHECK(check(SPAN_CLIENT, 0, 101 * MS, false, "read") == ALARM);
    CHECK(check(SPAN_CLIENT, 1, 1, true, "read") == ALARM);
    CHECK_TEXT(why, "error");
    CHECK(check(SPAN_LOCAL, 1, 101 * MS, true, "write") == ALARM);
    CHECK_TEXT(why, "error");
}

TEST(names_of_any_length)
{
    static char name[5000];

    memset(name, 'n', sizeof(name) - 1);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, name) == ALARM);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, "") == ALARM);
}

/* The next alarm of the rule, or the next refresh, reports the number of suppressed alarms. */
TEST(the_limit)
{
    int64_t begin_ns = monotonic_ns(), held_back = 0;

    write_rules("*>100ms, max=2/s");
    alarms = dropped = 0;
    for (int i = 0; i < 1000; i++)
        held_back += check(SPAN_SERVER, 1, 101 * MS, false, "read") == HELD_BACK;
    CHECK(alarms >= 2 && alarms <= 4 + (monotonic_ns() - begin_ns) / (SECOND / 2));
    CHECK(alarms + held_back == 1000);
    slow_spans_refresh(&slow);
    CHECK(dropped == held_back);
    for (int i = 0; i < 10; i++)
        held_back += check(SPAN_SERVER, 1, 101 * MS, false, "read") == HELD_BACK;
    write_rules("error");
    CHECK(dropped == held_back);
    CHECK_TEXT(why, "*>100ms");
}

TEST(wrong_rules_change_nothing)
{
    json_t *json;

    write_rules("*>5ms");
    write_rules("*>5parsecs");
    json = slow_spans_json(&slow);
    CHECK_TEXT(json_string_value(json_object_get(json, "wrong")), "*>5parsecs");
    CHECK(json_array_size(json_object_get(json, "rules")) == 1);
    json_decref(json);
    sender.alarms.next_ns = 0;
    CHECK(check(SPAN_SERVER, 1, 6 * MS, false, "read") == ALARM);
    write_rules("");
    CHECK(check(SPAN_SERVER, 1, 6 * MS, true, "read") == NO_RULE);
    CHECK(unlink(path) == 0);
}

CHECK_MAIN
