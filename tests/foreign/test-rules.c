/*
 * The rules of slow and failed foreign spans: which spans, how many alarms, and the file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/foreign/rules.h"

#include <stdlib.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static unsigned alarms, dropped;
static char why[64];

static void take_alarm(void *context, const struct foreign_alarm *alarm)
{
    (void)context;
    alarms += alarm->trace_id != 0;
    dropped += alarm->dropped;
    (void)snprintf(why, sizeof(why), "%.*s", (int)alarm->why.length, alarm->why.data);
}

static const struct foreign_callbacks callbacks = {.alarm = take_alarm};

static enum rules_verdict check(enum span_kind kind, uint64_t parent, int64_t duration_ns,
                                bool is_error, const char *name)
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

    return foreign_rules_check(&origin, &span, &callbacks);
}

static void write_rules(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    foreign_rules_refresh(&callbacks);
}

static void which_spans(void)
{
    CHECK(check(SPAN_SERVER, 1, 21 * MS, false, "write") == RULES_ALARM);
    CHECK_TEXT(why, "store:write>20ms");
    CHECK(check(SPAN_SERVER, 1, 20 * MS, false, "write") == RULES_FINE);
    CHECK(check(SPAN_SERVER, 1, 50 * MS, false, "read") == RULES_FINE);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, "read") == RULES_ALARM);
    CHECK(check(SPAN_CONSUMER, 1, 101 * MS, false, "read") == RULES_ALARM);
    CHECK(check(SPAN_CLIENT, 1, 101 * MS, false, "read") == RULES_FINE);
    CHECK(check(SPAN_LOCAL, 1, 101 * MS, false, "read") == RULES_FINE);
    CHECK(check(SPAN_PRODUCER, 1, 101 * MS, false, "read") == RULES_FINE);
    CHECK(check(SPAN_LOCAL, 0, 101 * MS, false, "read") == RULES_ALARM);
    CHECK(check(SPAN_CLIENT, 0, 101 * MS, false, "read") == RULES_ALARM);
    CHECK(check(SPAN_CLIENT, 1, 1, true, "read") == RULES_ALARM);
    CHECK_TEXT(why, "error");
    CHECK(check(SPAN_LOCAL, 1, 101 * MS, true, "write") == RULES_ALARM);
    CHECK_TEXT(why, "error");
}

static void names_of_any_length(void)
{
    static char name[5000];

    memset(name, 'n', sizeof(name) - 1);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, name) == RULES_ALARM);
    CHECK(check(SPAN_SERVER, 1, 101 * MS, false, "") == RULES_ALARM);
}

/* What the limit holds back is told by a later alarm, or within a second. */
static void the_limit(const char *path)
{
    unsigned held_back = 0;

    write_rules(path, "*>100ms, max=2/s");
    alarms = dropped = 0;
    for (int i = 0; i < 1000; i++)
        held_back += check(SPAN_SERVER, 1, 101 * MS, false, "read") == RULES_HELD_BACK;
    CHECK(alarms >= 2 && alarms <= 4 && alarms + held_back == 1000);
    foreign_rules_refresh(&callbacks);
    CHECK(dropped == held_back);
    for (int i = 0; i < 10; i++)
        held_back += check(SPAN_SERVER, 1, 101 * MS, false, "read") == RULES_HELD_BACK;
    write_rules(path, "error");
    CHECK(dropped == held_back);
    CHECK_TEXT(why, "*>100ms");
}

static void what_is_wrong_changes_nothing(const char *path)
{
    json_t *json;

    write_rules(path, "*>5ms");
    write_rules(path, "*>5parsecs");
    json = foreign_rules_json();
    CHECK_TEXT(json_string_value(json_object_get(json, "wrong")), "*>5parsecs");
    CHECK(json_array_size(json_object_get(json, "rules")) == 1);
    json_decref(json);
    CHECK(check(SPAN_SERVER, 1, 6 * MS, false, "read") == RULES_ALARM);
    write_rules(path, "");
    CHECK(check(SPAN_SERVER, 1, 6 * MS, true, "read") == RULES_FINE);
}

int main(void)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/slow", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(setenv("BLKIN_SLOW_FILE", path, 1) == 0);
    foreign_rules_open();
    CHECK(check(SPAN_SERVER, 0, 1000000 * MS, true, "write") == RULES_FINE);
    write_rules(path, "store:write>20ms, *>100ms, error\n");
    which_spans();
    names_of_any_length();
    the_limit(path);
    what_is_wrong_changes_nothing(path);
    CHECK(unlink(path) == 0);
    return check_status();
}
