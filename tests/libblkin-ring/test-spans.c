/*
 * Each part of the events of spans and alarms, as an agent reads them: ids and decisions, sizes,
 * times, finished spans from buffers, alarms and their limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/span/span.h"
#include "libblkin-ring/parts/newest.h"
#include "seed.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/wait.h>

#define IS_DECIDED (BLKIN_CONTEXT_DECIDED)
#define IS_SAMPLED (BLKIN_CONTEXT_SAMPLED | IS_DECIDED)
#define IS_DEBUG   BLKIN_CONTEXT_DEBUG
#define IS_REMOTE  BLKIN_CONTEXT_REMOTE
#define IS_RANDOM  BLKIN_CONTEXT_RANDOM

#define TEN "ten bytes."
#define C60 TEN TEN TEN TEN TEN TEN

/* ---- ids and decisions ---- */

static const struct decision_case {
    const char *policy;
    struct blkin_context context; /* of the root */
    uint32_t flags;               /* of the root's context; 0: it is not recorded */
    int event_flags, share;       /* in the root's event */
} decision_cases[] = {
    {"never", {0, 7, 9, 3, IS_SAMPLED | IS_REMOTE, 0, NULL}, IS_SAMPLED, 2, 0},
    {"never", {0, 7, 9, 0, IS_DEBUG | IS_REMOTE, 0, NULL}, IS_SAMPLED | IS_DEBUG, 3, 0},
    {"never", {5, 0, 9, 0, BLKIN_CONTEXT_SAMPLED, 0, NULL}, IS_SAMPLED, 0, 0},
    {"never", {0, 0, 0, 0, IS_SAMPLED, 0, NULL}, IS_SAMPLED, 0, 0},
    {"never", {0, 0, 0, 0, IS_DEBUG, 0, NULL}, IS_SAMPLED | IS_DEBUG, 1, 0},
    {"never", {0, 7, 9, 0, IS_REMOTE | IS_RANDOM, 0, NULL}, 0, 0, 0},
    {"never,root:always", {0, 7, 9, 0, IS_RANDOM, 0, NULL}, IS_SAMPLED | IS_RANDOM, 0, 1000000},
    {"always", {0, 7, 9, 0, IS_DECIDED | IS_REMOTE, 0, NULL}, 0, 0, 0},
    {"always", {0, 0, 0, 0, IS_DECIDED, 0, NULL}, 0, 0, 0},
    {"always", {0, 7, 9, 0, IS_REMOTE, 0, NULL}, IS_SAMPLED, 2, 1000000},
    {"always", {0, 0, 9, 0, 0, 0, NULL}, IS_SAMPLED, 0, 1000000},
    {"ratio=0.25", {0, 7, 9, 0, 0, 0, NULL}, IS_SAMPLED, 0, 250000},
    {"ratio=0.25", {0, UINT64_C(1) << 54, 9, 0, 0, 0, NULL}, 0, 0, 0},
    {"rate=100", {0, 7, 9, 0, 0, 0, NULL}, IS_SAMPLED, 0, 0},
};

/* Ends the span, and checks its event. */
static void check_event(struct blkin_span *span, const char *name, int kind, int flags, int share)
{
    const struct blkin_context context = *blkin_span_context(span);
    struct event event;
    char expected[200];

    blkin_span_end(span);
    (void)snprintf(expected, sizeof(expected), "%s of osd.7 10.0.0.1:6800, %d %d %d 0", name, kind,
                   flags, share);
    CHECK_TEXT(span_text(&event), expected);
    CHECK(event.trace_id_high == context.trace_id_high && event.trace_id == context.trace_id);
    CHECK(event.span_id == context.span_id && event.parent_id == context.parent_span_id);
}

/* The whole trace is recorded or none of it, here and in the next process. */
static void check_decision(const struct decision_case *of)
{
    const bool is_new = !of->context.trace_id && !of->context.trace_id_high;
    const unsigned before = spans();
    struct blkin_context root, child, expected = of->context;
    struct blkin_span span, below;

    CHECK(blkin_set_sampling(of->policy) == 0);
    blkin_span_begin_remote(&span, "root", BLKIN_SERVER, &of->context);
    root = *blkin_span_context(&span);
    blkin_span_begin(&below, "child", BLKIN_CLIENT, &span);
    child = *blkin_span_context(&below);
    CHECK(blkin_span_is_recorded(&span) == (of->flags != 0));
    CHECK(blkin_span_is_recorded(&below) == (of->flags != 0));
    if (of->flags) {
        check_event(&below, "child", 1, of->event_flags & BLKIN_SPAN_DEBUG, of->share);
        check_event(&span, "root", 2, of->event_flags, of->share);
    }
    blkin_span_end(&below);
    blkin_span_end(&span);
    CHECK(spans() == before + (of->flags ? 2 : 0));
    if (of->flags || is_new || !(of->context.flags & IS_DECIDED)) { /* not decided elsewhere */
        expected.flags = of->flags ? of->flags : IS_DECIDED | (of->context.flags & IS_RANDOM);
        expected.parent_span_id = is_new ? 0 : of->context.span_id;
        expected.span_id = root.span_id;
        CHECK(root.span_id && root.span_id != of->context.span_id);
    }
    if (is_new) {
        CHECK(root.trace_id && root.trace_id_high);
        expected.trace_id = root.trace_id;
        expected.trace_id_high = root.trace_id_high;
    }
    CHECK(memcmp(&root, &expected, sizeof(root)) == 0);
    if (of->flags) {
        expected.parent_span_id = root.span_id;
        expected.span_id = child.span_id;
        CHECK(child.span_id && child.span_id != root.span_id);
    }
    CHECK(memcmp(&child, &expected, sizeof(child)) == 0);
}

TEST(test_decisions)
{
    for (size_t i = 0; i < sizeof(decision_cases) / sizeof(decision_cases[0]); i++)
        check_decision(&decision_cases[i]);
    CHECK(blkin_set_sampling("always") == 0);
}

TEST(test_drop)
{
    const struct blkin_context debug = {.flags = IS_DEBUG | IS_RANDOM};
    const unsigned before = spans();
    struct blkin_span span, child, later;

    blkin_span_begin_remote(&span, "dropped", BLKIN_SERVER, &debug);
    blkin_span_begin(&child, "child", BLKIN_CLIENT, &span);
    blkin_span_drop(&span);
    CHECK(!blkin_span_is_recorded(&span) && span.context.flags == (IS_DECIDED | IS_RANDOM));
    blkin_span_begin(&later, "later", BLKIN_CLIENT, &span);
    CHECK(!blkin_span_is_recorded(&later) && later.context.trace_id == span.context.trace_id);
    blkin_span_end(&span);
    CHECK(spans() == before);
    blkin_span_end(&child); /* it began before */
    CHECK(spans() == before + 1);
}

/* ---- sizes ---- */

/* A span of fewer than 192 bytes passes its context on. A name has the room that the fixed 134
 * bytes leave, up to 120 bytes. The library uses no more than 2048 bytes. The sampling rule sees
 * the whole name. */
TEST(test_sizes)
{
    static const struct {
        size_t size;
        int name;  /* 0: not recorded */
        int texts; /* of 11 + 40 bytes that the log has room for */
    } cases[] = {{184, 0, 0},     {192, 58, 0},    {200, 66, 0},   {248, 114, 0},
                 {256, 120, 0},   {304, 120, 0},   {312, 120, 1},  {640, 120, 7},
                 {2048, 120, 35}, {2096, 120, 35}, {4096, 120, 35}};
    const struct blkin_context received = {.trace_id = 7, .span_id = 8};
    const char *const name = C60 C60 "!", *const text = TEN TEN TEN TEN;
    BLKIN_SPAN_ROOM(4096) rooms[2];
    char expected[4000];
    struct event event;

    CHECK(blkin_set_sampling("never," C60 "*:always") == 0);
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t size = cases[i / 2].size;
        const int length = cases[i / 2].name, texts = cases[i / 2].texts;
        struct blkin_span *const parent = blkin_span_begin_remote_in(&rooms[0], i % 2 ? 640 : size,
                                                                     name, BLKIN_SERVER, &received);
        struct blkin_span *const span =
            i % 2 ? blkin_span_begin_in(&rooms[1], size, name, BLKIN_SERVER, parent) : parent;
        char *at = expected;

        CHECK(blkin_span_is_recorded(span) == (length > 0) && span->context.trace_id == 7);
        CHECK((span->context.span_id == (i % 2 ? parent->context.span_id : 8)) == !length);
        for (int j = 0; j < 40; j++)
            blkin_span_log_at(span, BLKIN_ERR, text, length ? span_start_ns(span) : 0);
        blkin_span_end(span);
        at += sprintf(at, "%.*s of osd.7 10.0.0.1:6800, 2 0 1000000 %d", length, name, 40 - texts);
        for (int j = 0; j < texts; j++)
            at += sprintf(at, " | a 0 0 0 err=%s", text);
        if (length)
            CHECK_TEXT(span_text(&event), expected);
    }
    CHECK(blkin_set_sampling("always") == 0);
}

/* ---- services and the remote side ---- */

TEST(test_services)
{
    static const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0x5c1a};
    char name[20], expected[200];
    struct blkin_span span;
    struct event event;

    blkin_span_begin(&span, "of its own", BLKIN_SERVER, NULL);
    blkin_span_set_service(&span, C60 C60, "a." C60, 65535);
    errno = 4711;
    blkin_span_set_remote_sockaddr(&span, "mon", (const struct sockaddr *)&address,
                                   sizeof(address));
    CHECK(errno == 4711);
    blkin_span_end(&span);
    CHECK_TEXT(span_text(&event), "of its own of " C60 TEN "te a." TEN TEN TEN TEN
                                  "ten :65535, 2 0 1000000 0 | r 0 0 6748 0.0.0.0=mon");
    for (int i = 0; i < 9; i++) { /* more often than the library has slots */
        (void)snprintf(name, sizeof(name), "osd.%d", i);
        blkin_span_begin(&span, "span", BLKIN_SERVER, NULL);
        blkin_set_service(name, NULL, (uint16_t)i); /* that at the span's end counts */
        blkin_span_end(&span);
        (void)snprintf(expected, sizeof(expected), "span of osd.%d :%d, 2 0 1000000 0", i, i);
        CHECK_TEXT(span_text(&event), expected);
    }
    blkin_set_service(NULL, "10.0.0.1", 1);
    blkin_span_begin(&span, "span", BLKIN_SERVER, NULL);
    blkin_span_end(&span);
    CHECK_TEXT(span_text(&event), "span of test-spans :0, 2 0 1000000 0");
    blkin_set_service("osd.7", "10.0.0.1", 6800);
}

TEST(test_severities)
{
    struct blkin_span span;
    struct event event;

    CHECK(blkin_set_sampling("always,severity=err") == 0);
    blkin_span_begin(&span, "span", BLKIN_SERVER, NULL);
    for (int i = BLKIN_EMERG; i <= BLKIN_DEBUG; i++)
        blkin_span_log_at(&span, (enum blkin_severity)i, "", span_start_ns(&span));
    blkin_span_log(&span, BLKIN_WARNING, "");
    blkin_span_annotate(&span, "");
    blkin_span_end(&span);
    CHECK_TEXT(span_text(&event), "span of osd.7 10.0.0.1:6800, 2 0 1000000 0 | a 0 0 0 emerg= | "
                                  "a 0 0 0 alert= | a 0 0 0 crit= | a 0 0 0 err=");
    CHECK(blkin_set_sampling("always") == 0);
}

/* ---- times ---- */

TEST(test_times)
{
    const uint64_t before = blkin_now();
    const unsigned count = spans();
    struct blkin_span span;
    struct event event, later;

    blkin_span_begin(&span, "span", BLKIN_SERVER, NULL);
    blkin_span_set_start(&span, before - 5000);
    blkin_span_end_at(&span, before - 2000);
    (void)span_text(&event);
    CHECK(event.duration_ns == 3000 && (uint64_t)event.time_ns == before - 2000);
    CHECK(event.thread == blkin_thread.number && event.thread >> BLKIN_THREAD_BITS == 0);
    blkin_span_end(&span); /* no effect */
    CHECK(spans() == count + 1);
    blkin_span_begin(&span, "before its start", BLKIN_SERVER, NULL);
    blkin_span_end_at(&span, before - 5000);
    (void)span_text(&later);
    CHECK(later.duration_ns == 0 && (uint64_t)later.time_ns == before - 5000);
    CHECK(later.thread == event.thread && later.sequence > event.sequence);
    /* the end is now, and not in the future */
    blkin_periodic_hurry();
    blkin_span_begin(&span, "now", BLKIN_SERVER, NULL);
    blkin_span_end_at(&span, blkin_now() + 3600 * SECOND);
    (void)span_text(&event);
    CHECK((uint64_t)event.time_ns > before && (uint64_t)event.time_ns <= blkin_now());
    CHECK(event.duration_ns <= (uint64_t)event.time_ns - before);
    blkin_periodic_hurry();
    blkin_span_begin(&span, "later", BLKIN_SERVER, NULL);
    blkin_span_end(&span);
    (void)span_text(&later);
    CHECK(later.time_ns > event.time_ns && (uint64_t)later.time_ns <= blkin_now());
    CHECK(later.duration_ns <= (uint64_t)(later.time_ns - event.time_ns));
}

/* ---- finished spans ---- */

static struct {
    uint8_t version, kind;
    uint16_t name_length;
    uint32_t flags;
    uint64_t numbers[6];
    char rest[200000];
} buffer;
static char *buffer_end;

static void put_head(const char *name, uint32_t flags, const uint64_t numbers[6])
{
    buffer.version = 1;
    buffer.kind = BLKIN_CONSUMER;
    buffer.name_length = (uint16_t)strlen(name);
    buffer.flags = flags;
    memcpy(buffer.numbers, numbers, sizeof(buffer.numbers));
    buffer_end = stpcpy(buffer.rest, name);
}

static void put_attribute(char type, const char *key, const void *value, uint16_t length)
{
    *buffer_end++ = type;
    *buffer_end++ = (char)strlen(key);
    memcpy(buffer_end, &length, 2);
    buffer_end = stpcpy(buffer_end + 2, key);
    memcpy(buffer_end, value, length);
    buffer_end += length;
}

static int record_buffer(void)
{
    return blkin_record_span(&buffer, (size_t)(buffer_end - (char *)&buffer));
}

TEST(test_finished_span)
{
    const uint64_t now = blkin_now();
    const uint64_t numbers[] = {5, 6, 7, 8, now - 10000, now - 1000};
    const uint64_t link[] = {1, 2, 3}, text_at[] = {now - 4000, 0x6574616c}; /* "late" */
    struct event event;

    put_head("finished", IS_SAMPLED | IS_DEBUG | IS_REMOTE | 1U << 31, numbers);
    put_attribute('s', "object", "rbd\0data", 8);
    put_attribute('I', "int", &(int64_t){-5}, 8);
    put_attribute('U', "uint", &(uint64_t){UINT64_MAX}, 8);
    put_attribute('D', "double", &(double){0.5}, 8);
    put_attribute('B', "yes", "\x2", 1);
    put_attribute('B', "no", "", 1);
    put_attribute('s', "error", "EIO", 3);
    put_attribute('4', "", text_at, 12);
    put_attribute('0', "", text_at, 8);
    put_attribute('7', "", text_at, 12);
    put_attribute('l', "", link, 24);
    put_attribute('r', C60 C60, "\x50\xc3" C60, 62);
    put_attribute('e', "osd.8", "\x90\x1a" /* split: a digit follows */ "2001:db8::1", 13);
    CHECK(record_buffer() == 0);
    CHECK_TEXT(
        span_text(&event),
        "finished of osd.8 2001:db8::1:6800, 4 7 0 0 | s 0 0 0 object=rbd | i 0 "
        "fffffffffffffffb 0 int= | u 0 ffffffffffffffff 0 uint= | d 0 3fe0000000000000 0 "
        "double= | b 0 1 0 yes= | b 0 0 0 no= | s 0 0 0 error=EIO | a 6000 0 0 "
        "warning=late | a 6000 0 0 emerg= | a 6000 0 0 debug=late | l 0 123 0 = | r 0 0 50000 " TEN
            TEN TEN TEN "ten by=" C60 TEN "te");
    CHECK(event.trace_id_high == 5 && event.trace_id == 6);
    CHECK(event.span_id == 7 && event.parent_id == 8);
    CHECK(event.duration_ns == 9000 && (uint64_t)event.time_ns == now - 1000);
    /* new ids */
    put_head("new", 0, (const uint64_t[6]){0, 0, 0, 9, now - 2, now - 1});
    CHECK(record_buffer() == 0);
    CHECK_TEXT(span_text(&event), "new of osd.7 10.0.0.1:6800, 4 0 1000000 0");
    CHECK(event.trace_id && event.span_id && event.span_id != 7 && !event.parent_id);
    CHECK(event.duration_ns == 1);
}

/* Records the buffer. Returns the number of spans, or -1: the function refuses the buffer. */
static int recorded(void)
{
    const unsigned before = spans();
    const int result = record_buffer();

    CHECK(result == 0 || result == -EINVAL);
    CHECK(result == 0 || spans() == before);
    return result ? -1 : (int)(spans() - before);
}

/* A buffer with one wrong attribute records nothing. */
TEST(test_wrong_buffers)
{
    static const struct {
        char type;
        const char *key;
        uint16_t least, most; /* length of the value */
    } cases[] = {{'s', "", 0, 65535},  {'s', "k", 0, 65535}, {'I', "k", 8, 8},  {'U', "", 8, 8},
                 {'D', "k", 8, 8},     {'B', "k", 1, 1},     {'l', "", 24, 24}, {'l', "k", 1, 0},
                 {'r', "mon", 2, 300}, {'e', "", 2, 300},    {'0', "", 8, 300}, {'7', "", 8, 300},
                 {'0', "k", 1, 0},     {'/', "", 1, 0},      {'8', "", 1, 0},   {'z', "k", 1, 0},
                 {'\0', "", 1, 0}};
    static const char zeros[65535];
    const uint64_t numbers[] = {0, 6, 7, 8, 1, 2};
    unsigned accepted = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned j = 0; j < 26; j++) {
            put_head("buffer", IS_SAMPLED, numbers);
            put_attribute(cases[i].type, cases[i].key, zeros, (uint16_t)j);
            CHECK(recorded() == (j >= cases[i].least && j <= cases[i].most ? 1 : -1));
        }
        put_head("buffer", IS_SAMPLED, numbers);
        put_attribute(cases[i].type, cases[i].key, zeros, cases[i].most);
        CHECK(recorded() == (cases[i].most >= cases[i].least ? 1 : -1));
    }
    /* cut off: only a whole name, and a whole attribute, are right */
    put_head("buffer", IS_SAMPLED, numbers);
    put_attribute('s', "object", "rbd", 3);
    for (size_t length = 56 + 6 + 4 + 6 + 3; length > 0; length--, buffer_end--)
        CHECK(recorded() == (length == 56 + 6 || length == 56 + 6 + 4 + 6 + 3 ? 1 : -1));
    CHECK(blkin_record_span(NULL, 100) == -EINVAL);
    for (unsigned i = 0; i < 8; i++) {
        put_head("buffer", IS_SAMPLED, numbers);
        buffer.version = (uint8_t)(i % 4);
        buffer.kind = (uint8_t)(BLKIN_CONSUMER + i / 4);
        CHECK(recorded() == (i == 1 ? 1 : -1));
    }
    put_head("buffer", IS_DECIDED, numbers);
    CHECK(recorded() == 0);
    /* any bytes are refused, or a span */
    dice_state = seed_begin();
    for (unsigned i = 0; i < 1000; i++) {
        put_head("buffer", IS_SAMPLED, numbers);
        for (uint64_t j = dice(4); j > 0; j--)
            put_attribute("sIUDBlre07"[dice(10)], "k", zeros, (uint16_t)(dice(2) * 8 + dice(4)));
        buffer_end -= dice(2) * dice(60);
        for (uint64_t j = dice(4); j > 0; j--)
            buffer.rest[dice(40)] = (char)(dice(2) ? dice(256) : dice(9));
        accepted += recorded() == 1;
    }
    CHECK(accepted > 10 && accepted < 990);
}

/* ---- alarms ---- */

struct slow_case {
    uint64_t ns;
    const char *service, *name, *error, *keep; /* NULL: osd.7, write, none and none */
    unsigned tags;
    const char *expected; /* name, service and why of the alarm; NULL: none */
};

/* Records a span of this length. Returns its context. */
static struct blkin_context record(const struct slow_case *of)
{
    const uint64_t now = blkin_now();
    struct blkin_span span;

    blkin_span_begin(&span, of->name ? of->name : "write", BLKIN_SERVER, NULL);
    blkin_span_set_start(&span, now - of->ns);
    blkin_span_set_service(&span, of->service, NULL, 0);
    for (unsigned i = 0; i < of->tags; i++)
        blkin_span_tag_string(&span, "key", "value");
    if (of->error)
        blkin_span_error(&span, of->error);
    if (of->keep) {
        blkin_span_keep(&span, of->keep);
        blkin_span_keep(&span, "no effect");
    }
    blkin_span_end_at(&span, now);
    return *blkin_span_context(&span);
}

static void record_some(unsigned count, uint64_t ns)
{
    while (count-- > 0)
        (void)record(&(struct slow_case){.ns = ns});
}

struct alarm_totals {
    uint32_t pid, count, passed; /* passed: those that are no reports */
    uint64_t suppressed;
    struct blkin_slow_event newest;
    char texts[300]; /* of the newest one: name, service, why */
};

static void take_alarm(void *context, const struct rings_record *record)
{
    struct alarm_totals *alarms = context;
    struct ring_alarm alarm;

    if (record->entry.event != BLKIN_EVENT_SLOW || record->entry.pid != alarms->pid)
        return;
    CHECK(ring_alarm(&record->entry, &alarm) == DECODED_ALARM);
    CHECK(record->ring >= memory.cpus && alarm.event.pid == alarms->pid);
    CHECK(alarm.event.sequence == ++alarms->count);
    (void)snprintf(alarms->texts, sizeof(alarms->texts), "%s of %s: %s", alarm.name.data,
                   alarm.service.data, alarm.why.data);
    alarms->newest = alarm.event;
    alarms->passed += alarm.event.trace_id != 0;
    alarms->suppressed += alarm.event.dropped;
}

static struct alarm_totals all_alarms(pid_t pid)
{
    struct alarm_totals alarms = {.pid = (uint32_t)pid};

    (void)rings_walk_all(&memory, take_alarm, &alarms);
    return alarms;
}

TEST(test_alarms)
{
    static const struct slow_case cases[] = {
        {20 * MS, "osd.1", NULL, NULL, NULL, 0, NULL},
        {20 * MS + 1, "osd.1", NULL, NULL, NULL, 0, "write of osd.1: osd*:write>20ms"},
        {20 * MS + 1, NULL, NULL, "EIO", NULL, 0, "write of osd.7: osd*:write>20ms"},
        {50 * MS, "mds.a", NULL, NULL, NULL, 0, NULL},
        {101 * MS, "mds.a", NULL, NULL, NULL, 0, "write of mds.a: *>100ms"},
        {2 * SECOND, "osd.1", "scrub", NULL, NULL, 0, NULL},
        {1, "osd.1", NULL, "EIO", NULL, 0, NULL},
        {1, "mon", NULL, "EIO", NULL, 0, "write of mon: mon:error"},
        {1, "mon", NULL, NULL, "odd size", 0, "write of mon: odd size"},
        {SECOND, "mon", NULL, "EIO", "odd size", 10, "write of mon: odd size"},
        {1, "mon", NULL, NULL, "no room for this", 100, "write of mon: keep"},
        {1, "mon", C60 C60 "!", NULL, C60 C60 "!", 0, C60 C60 " of mon: " C60 C60},
    };
    struct alarm_totals before = all_alarms(getpid()), after;

    CHECK(blkin_set_slow("osd*:write>20ms, scrub>10s, *>100ms, mon:error") == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++, before = after) {
        const struct blkin_context context = record(&cases[i]);
        const struct blkin_slow_event *newest = &after.newest;
        struct event event;

        (void)span_text(&event);
        CHECK((event.flags & BLKIN_SPAN_ERROR) == (cases[i].error ? BLKIN_SPAN_ERROR : 0));
        CHECK(event.duration_ns == cases[i].ns);
        after = all_alarms(getpid());
        CHECK(after.count == before.count + (cases[i].expected != NULL));
        if (!cases[i].expected)
            continue;
        CHECK_TEXT(after.texts, cases[i].expected);
        CHECK(memcmp(&newest->trace_id,
                     (const uint64_t[]){context.trace_id, context.trace_id_high, context.span_id,
                                        cases[i].ns, (uint64_t)event.time_ns},
                     40) == 0);
        CHECK(newest->dropped == 0);
    }
}

/* The cap lets a burst of a second through. Suppressed alarms are counted with their rule. The
 * periodic work may report some of them at any time. */
TEST(test_cap)
{
    const struct alarm_totals before = all_alarms(getpid());
    struct alarm_totals after, now = {0};
    unsigned made = 0;

    CHECK(blkin_set_slow("*>1ms, max=0.001/s") == 0);
    record_some(4, 2 * MS);
    (void)record(&(struct slow_case){.ns = 2 * MS, .keep = "because"});
    /* the alarms that an older policy suppressed are reported, too */
    CHECK(blkin_set_slow("*>2s, max=1/s") == 0);
    blkin_slow_refresh();
    after = all_alarms(getpid());
    CHECK(after.passed == before.passed + 1 && after.suppressed == before.suppressed + 4);
    CHECK_TEXT(after.texts, " of osd.7: keep");
    CHECK(after.newest.duration == 0 && after.newest.span_id == 0 && after.newest.dropped == 1);
    blkin_slow_refresh();
    CHECK(all_alarms(getpid()).count == after.count);
    WORK_UNTIL(now.newest.dropped > 0 && now.newest.trace_id != 0,
               (record_some(1, 3 * SECOND), made++, now = all_alarms(getpid())));
    CHECK_TEXT(now.texts, "write of osd.7: *>2s");
    blkin_slow_refresh();
    now = all_alarms(getpid());
    CHECK(now.passed >= after.passed + 3);
    CHECK(now.passed + now.suppressed == after.passed + after.suppressed + made);
}

/* A child can set rules, even if its parent was setting rules at the fork, and numbers its alarms
 * again. Each process reports its suppressed alarms, at its exit at the latest. */
TEST(test_alarms_of_children)
{
    const struct alarm_totals before = all_alarms(getpid());
    struct alarm_totals after;
    int status = -1;
    pid_t pid;

    CHECK(blkin_set_slow("*>1ms, max=0.001/s") == 0);
    record_some(3, 2 * MS);
    CHECK(pthread_mutex_lock(&blkin_slow_source.lock) == 0);
    CHECK(pthread_mutex_lock(&blkin_sampling_source.lock) == 0);
    pid = fork();
    if (pid == 0) {
        (void)alarm(PATIENCE_MS / 1000); /* ends a child that hangs */
        check_failures = 0;
        CHECK(blkin_set_sampling("always") == 0);
        blkin_slow_refresh();
        CHECK(all_alarms(getpid()).count == 0);
        CHECK(blkin_set_slow("*>1ms, max=0.001/s") == 0);
        record_some(3, 2 * MS);
        exit(check_status());
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(pthread_mutex_unlock(&blkin_sampling_source.lock) == 0);
    CHECK(pthread_mutex_unlock(&blkin_slow_source.lock) == 0);
    after = all_alarms(pid);
    CHECK(after.passed == 1 && after.suppressed == 2);
    blkin_slow_refresh();
    after = all_alarms(getpid());
    CHECK(after.passed == before.passed + 1 && after.suppressed == before.suppressed + 2);
}

/* Rules that are refused change nothing, and more changes than the library has slots work. */
TEST(test_rules_by_call)
{
    const unsigned before = all_alarms(getpid()).count;

    CHECK(blkin_set_slow(NULL) == -EINVAL);
    for (int i = 0; i < 100; i++)
        CHECK(blkin_set_slow(i % 2 ? "*>1ms" : "*>3ms") == 0);
    CHECK(blkin_set_slow("*>1") == -EINVAL && blkin_slow_least_ns == MS + 1);
    record_some(1, 2 * MS);
    CHECK(all_alarms(getpid()).count == before + 1);
    CHECK(blkin_set_slow("") == 0 && blkin_slow_least_ns == UINT64_MAX);
    record_some(1, SECOND);
    CHECK(blkin_set_slow("*>1ms") == 0 && blkin_set_sampling("never") == 0);
    record_some(1, SECOND);
    CHECK(all_alarms(getpid()).count == before + 1);
}

int main(void)
{
    setenv("BLKIN_SLOW_FILE", "/nonexistent", 1);
    blkin_set_service("osd.7", "10.0.0.1", 6800);
    return newest_play();
}
