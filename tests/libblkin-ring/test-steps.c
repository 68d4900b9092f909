/*
 * Steps in full logs: their events, byte for byte as in doc/format.md, and their alarms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "libblkin/base/provider.h"
#include "libblkin-ring/parts/newest.h"
#include "tracepoints/format/step_id.h"

/* Checks the newest event. In its log, ******** is a time since base_ns, and ~ is any digit.
 * Returns the event, which is valid until the next call. */
static struct event check_newest(const struct blkin_context *ids, unsigned flags, const char *log,
                                 uint64_t base_ns)
{
    const struct ring_clock now = {0, monotonic_ns(), 0};
    struct event event = {0};

    CHECK(ring_event(&find_newest(BLKIN_EVENT_SPAN)->entry, &now, &event) == DECODED);
    event.time_ns -= event.age_ns;
    CHECK(event.trace_id == ids->trace_id && event.trace_id_high == ids->trace_id_high);
    CHECK(event.span_id == ids->span_id && event.parent_id == ids->parent_span_id);
    CHECK(event.flags == flags && event.log.length == strlen(log));
    for (size_t i = 0; i < event.log.length && log[i]; i++) {
        const uint64_t time_ns = blkin_number_at(event.log.data + i, log[i] == '*' ? 8 : 0);

        CHECK(time_ns <= (uint64_t)event.time_ns - base_ns);
        CHECK(log[i] == '*' || log[i] == '~' || log[i] == event.log.data[i]);
        i += log[i] == '*' ? 7 : 0;
    }
    return event;
}

#define X10 "xxxxxxxxxx"
#define X50 X10 X10 X10 X10 X10
#define X80 X50 X10 X10 X10

/* A step without room for its end becomes an event of its own, and the next step has a number. The
 * last steps use the reserve, and end with their span. The log has room for exactly the first tag
 * "k", the end of the step "e", and the begin of the last step. */
TEST(test_full)
{
    static const char of_big[] = "#2000T~~~~~~~~3`310000000" X80 X80 X80 "s10B3k" X80 X80 X50;
    char log[640] = "(10********s)********#3000(40********nexts5030errorEIO)********";
    const struct blkin_provider *provider = blkin_provider();
    const uint64_t base_ns = blkin_now();
    struct blkin_context context, deep;
    struct blkin_span span;
    struct event event;
    uint64_t id;

    blkin_span_begin(&span, "full", BLKIN_SERVER, NULL);
    id = blkin_span_context(&span)->span_id;
    blkin_span_set_start(&span, base_ns);
    blkin_step_begin(&span, "s", BLKIN_INTERNAL);
    blkin_step_end(&span);
    blkin_step_begin(&span, "big", BLKIN_CONSUMER);
    blkin_step_context(&span, &context);
    blkin_span_log_at(&span, BLKIN_ERR, X80 X80 X80 "cut", base_ns + 1);
    blkin_span_tag_string(&span, "k", X80 X80 X50);
    blkin_span_tag_int64(&span, "dropped", 1);
    blkin_step_end(&span);
    CHECK(context.span_id == blkin_step_id(id, 2) && context.parent_span_id == id);
    event = check_newest(&context, BLKIN_SPAN_STEP, of_big, base_ns);
    CHECK_TEXT(event.span_name.data, "big");
    CHECK(event.span_kind == BLKIN_CONSUMER && event.dropped == 0 && event.duration_ns > 0);
    CHECK(blkin_number_at(event.log.data + 6, 8) ==
          (base_ns + event.duration_ns - (uint64_t)event.time_ns) << 16 >> 16);
    blkin_step_begin(&span, "next", BLKIN_INTERNAL);
    blkin_span_error(&span, "EIO");
    blkin_step_end(&span);
    for (uint64_t i = 4; i <= 16; i++) { /* the last one is too deep */
        blkin_step_begin(&span, "d", BLKIN_INTERNAL);
        strcat(log, i < 16 ? "(10********d" : "");
        blkin_step_context(&span, &deep);
        CHECK(deep.span_id == blkin_step_id(id, i < 16 ? i : 15));
    }
    blkin_span_annotate(&span, "lost with its step");
    for (uint64_t i = 4; i <= 16; i++) {
        blkin_step_end(&span);
        strcat(log, i < 16 ? ")********" : "(10********es10S0k" X10 X10 X10 "xxxxx)********");
    }
    blkin_step_end(&span); /* no step is open */
    blkin_step_begin(&span, "e", BLKIN_INTERNAL);
    blkin_span_tag_string(&span, "k", X10 X10 X10 "xxxxx");
    blkin_step_end(&span);
    blkin_span_tag_int64(&span, "dropped", 2);
    blkin_step_begin(&span, "untaken", BLKIN_INTERNAL);
    blkin_provider_table = &blkin_no_provider;
    blkin_step_end(&span);
    blkin_provider_table = provider;
    blkin_step_begin(&span, "own", BLKIN_CLIENT);
    blkin_span_log_at(&span, BLKIN_ERR, "in", base_ns + 1);
    blkin_step_begin(&span, X80 "xx", BLKIN_INTERNAL);
    blkin_span_end_at(&span, blkin_now());
    event = check_newest(blkin_span_context(&span), BLKIN_SPAN_ERROR, log, base_ns);
    CHECK(event.span_kind == BLKIN_SERVER && event.dropped == 5);
    CHECK(event.duration_ns == (uint64_t)event.time_ns - base_ns);
}

/* The first slow step raises the only alarm of its span. A step that begins after the end of its
 * span has no duration. */
TEST(test_alarms)
{
    static const struct {
        const char *rules, *name; /* NULL: no alarm, as the end is early */
        uint64_t step;
    } cases[] = {{"slow>1000s, *>0ns", "sync", 2},
                 {"slow>1000s, hung>0ns", NULL, 0},
                 {"slow>1000s, hung>0ns", "hung", 3}};
    uint32_t alarms = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t start_ns = blkin_now() - 5000;
        struct ring_alarm alarm;
        struct blkin_span span;

        CHECK(blkin_set_slow(cases[i].rules) == 0);
        blkin_span_begin(&span, "slow", BLKIN_SERVER, NULL);
        blkin_span_set_start(&span, start_ns);
        blkin_span_annotate(&span, "text");
        blkin_step_begin(&span, "journal", BLKIN_INTERNAL);
        blkin_step_begin(&span, "sync", BLKIN_INTERNAL);
        blkin_step_end(&span);
        blkin_step_end(&span);
        blkin_step_begin(&span, "hung", BLKIN_INTERNAL);
        blkin_span_end_at(&span, cases[i].name ? blkin_now() : start_ns + 4000);
        if (!cases[i].name)
            continue;
        CHECK(ring_alarm(&find_newest(BLKIN_EVENT_SLOW)->entry, &alarm) == DECODED_ALARM);
        CHECK_TEXT(alarm.name.data, cases[i].name);
        CHECK(alarm.event.sequence == ++alarms);
        CHECK(alarm.event.span_id == blkin_step_id(span.context.span_id, cases[i].step));
        CHECK(alarm.event.duration > 0 && alarm.event.monotonic <= blkin_now() &&
              alarm.event.monotonic - alarm.event.duration >= start_ns + 5000);
    }
}

int main(void)
{
    setenv("BLKIN_SLOW_FILE", "/nonexistent", 1);
    return newest_play();
}
