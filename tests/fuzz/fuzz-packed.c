/*
 * Fuzzes packed texts and the steps in their logs.
 *
 * The input makes a log of records as libblkin writes them, with head and tail by libblkin's own
 * functions. Such a text must be read. Then bytes of the text are changed: losses must be counted,
 * and each span that is given out must be valid. (Contents: tests/format,
 * tests/plugin/test-packed.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/event.h"

#include "finished_span.h"

#define BLKIN_PORTABLE
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"

#define SERVICE "osd"

static bool is_broken; /* the text was changed: its contents are unknown */
static uint64_t trace_id, spans, steps;

static char *put_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

/* ---- a log ---- */

#define STEPS_OPEN 12 /* nested steps: fewer than the assembler's limit */

/* Writes some records of a log, and counts the steps. */
static char *put_log(struct fuzz *source, char *at)
{
    static const char *const records[] = {
        "(4010000000step",   ")10000000",        "(4220000000call", ")30000000", "s1030k(0)",
        "66010000000)queue", "I2010000000000#T", "s0000",           "T50000000", "n30new",
    };
    unsigned open = 0;

    for (uint64_t left = take(source, 1) % 48; left; left--) {
        const uint64_t choice = take(source, 1) % (sizeof(records) / sizeof(records[0]));
        const char *record = records[choice];

        if (record[0] == '(' ? open == STEPS_OPEN : record[0] == ')' && open == 0)
            continue;
        at = put_text(at, record, strlen(record));
        steps += record[0] == '(';
        open += record[0] == '(';
        open -= record[0] == ')';
    }
    return at;
}

/* ---- an event ---- */

static size_t put_packed(struct fuzz *source, bool is_step, char *packed)
{
    const uint64_t ip_length = take(source, 1) % 46;
    char *at = packed;

    *at++ = '0' + BLKIN_FORMAT_VERSION;
    at = blkin_put_length(blkin_put_word(at, take(source, 6)), take(source, 2) & 0xfff);
    for (int word = 0; word < 5; word++)
        at = blkin_put_word(at, take(source, 6));
    REQUIRE(at == packed + BLKIN_HEAD_SIZE);
    if (is_step)
        at = put_text(at, "#7000", 5);
    at = put_log(source, at);
    for (uint64_t i = 0; i < ip_length; i++)
        *at++ = (char)take(source, 1);
    at = blkin_put_length(blkin_put_short(at, (uint32_t)take(source, 2)), ip_length);
    return (size_t)(at - packed);
}

/* ---- decoded events ---- */

static void take_span(void *context, struct span *span)
{
    (void)context;
    spans++;
    check_finished(span);
    REQUIRE(span->trace_id == trace_id);
}

/* Requires that all of an unchanged text is in spans, and that each loss is counted. */
static void check_counts(const struct assembler_counts *counts, const struct event *event)
{
    REQUIRE(counts->events == 1);
    REQUIRE(counts->events_in_span + counts->events_invalid + counts->events_no_room +
                counts->events_late + counts->events_duplicate + counts->events_process +
                counts->events_metric ==
            1);
    REQUIRE(counts->spans_finished == spans && counts->spans_incomplete <= spans);
    REQUIRE(counts->spans_open == 0 && counts->open_bytes == 0);
    if (is_broken)
        return;
    REQUIRE(counts->log_errors == (counts->events_invalid ? 0 : event->dropped));
    if (counts->events_invalid)
        REQUIRE(!event->span_id || !(event->trace_id | event->trace_id_high));
    else
        REQUIRE(spans == 1 + steps);
}

static void assemble(const struct event *event)
{
    static const struct assembler_options options = {
        .idle_timeout_ns = 1000,
        .end_timeout_ns = 1000,
        .open_timeout_ns = 1000,
        .max_open_spans = 1000,
        .max_open_bytes = 1 << 24,
    };
    struct assembler *assembler = assembler_new(&options, take_span, NULL);

    REQUIRE(assembler);
    assembler_add(assembler, event);
    while (assembler_flush_some(assembler, UINT32_MAX))
        ;
    check_counts(assembler_counts(assembler), event);
    assembler_free(assembler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[8192];
    static struct fenced fenced;
    struct fuzz source = {data, data + size};
    struct event event = {
        .kind = EVENT_SPAN,
        .time_ns = (int64_t)take(&source, 8),
        .flags = take(&source, 1),
        .trace_id = take(&source, 1),
        .duration_ns = take(&source, 4),
        .span_name = {"write", 5},
        .service = {SERVICE, 3},
    };
    const uint64_t changes = take(&source, 1);
    size_t length;

    random_number = hash_of(data, size);
    spans = steps = 0;
    trace_id = event.trace_id;
    length = put_packed(&source, event.flags & BLKIN_SPAN_STEP, text);
    is_broken = changes >= 128;
    for (uint64_t i = changes & 7; is_broken && i; i--)
        text[take(&source, 2) % length] = (char)take(&source, 1);
    if (changes >= 224)
        length = take(&source, 2) % length;
    memcpy(fenced.bytes, text, length);
    fence_put(&fenced, length);
    if (changes >= 240)
        event.kind = (enum event_kind)(EVENT_BEGIN + changes % 4);
    if (packed_read(&event, (struct text){fenced.bytes, length}))
        assemble(&event);
    else
        REQUIRE(is_broken);
    fence_lift(&fenced, length);
    return 0;
}
