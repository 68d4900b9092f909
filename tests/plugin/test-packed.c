/*
 * Packed texts and the records of a log: all members of the result, each length and each digit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "check.h"
#include "tracepoints/format/events.h"

/* The numbers have all of their bits; `sampled` is not read. */
#define HEAD_THREAD "1Q<DI7Vjb]o"
#define HEAD_WHOLE  HEAD_THREAD "_glZ9NFAS4hk=_JR@83EfQY^Lkoooo[VS4`k=_JR"
#define HEAD_DETAIL HEAD_THREAD "@83EfQY^Lkok=_JRS4`k=_JR"
#define IP          "10.0.0.1"
#define WORD        "00000000"

static bool is_read(enum event_kind kind, const char *packed, size_t length)
{
    return packed_read(&(struct event){.kind = kind}, (struct text){packed, length});
}

/* Compares the whole event. Another character in place of one of the first or last digits makes the
 * text invalid. */
static void check_read(struct event *expected, const char *packed, size_t first, size_t last)
{
    const size_t length = strlen(packed);
    struct event event;

    memset(&event, 0xee, sizeof(event)); /* all members that packed_read() sets are seen */
    event.kind = expected->kind;
    CHECK(packed_read(&event, (struct text){packed, length}));
    CHECK(memcmp(&event, expected, sizeof(event)) == 0);
    for (size_t i = 0; i < length; i++) {
        for (const char *wrong = "/p"; *wrong && (i < first || i >= length - last); wrong++) {
            char damaged[100];

            (void)strcpy(damaged, packed);
            damaged[i] = *wrong;
            CHECK(!is_read(expected->kind, damaged, length));
        }
    }
}

TEST(test_heads)
{
    static const char whole[] = HEAD_WHOLE "a log" IP "oo?80", detail[] = HEAD_DETAIL "a log";
    static const char zeros[] = "10000000000" WORD WORD WORD WORD WORD "00000";
    static const char port[] = HEAD_WHOLE "00@00", ip[] = HEAD_WHOLE IP "00090";
    struct event expected;

    memset(&expected, 0xee, sizeof(expected));
    expected.kind = EVENT_TAG;
    expected.thread = 0xfedcba987654321;
    expected.sequence = 0x89abcdef;
    expected.span_id = 0xfedcba9876543210;
    expected.age_ns = 0x89abcdef0123;
    expected.log = (struct text){detail + BLKIN_DETAIL_HEAD_SIZE, 5};
    check_read(&expected, detail, BLKIN_DETAIL_HEAD_SIZE, 0);
    expected.kind = EVENT_SPAN;
    expected.trace_id_high = 0x8123456789abcdef;
    expected.dropped = 0x9ab;
    expected.log = (struct text){whole + BLKIN_HEAD_SIZE, 5};
    expected.ip = (struct text){whole + BLKIN_HEAD_SIZE + 5, strlen(IP)};
    expected.port = 65535;
    check_read(&expected, whole, BLKIN_HEAD_SIZE, BLKIN_TAIL_SIZE);

    /* only blkin:span and blkin:tag have a log */
    CHECK(!is_read(EVENT_BEGIN, whole, strlen(whole)) &&
          !is_read(EVENT_END, detail, strlen(detail)));
    CHECK(is_read(EVENT_BEGIN, zeros, strlen(zeros)));
    CHECK(!is_read(EVENT_SPAN, zeros, strlen(zeros) - 1));
    CHECK(is_read(EVENT_END, detail, BLKIN_DETAIL_HEAD_SIZE));
    CHECK(!is_read(EVENT_END, detail, BLKIN_DETAIL_HEAD_SIZE - 1));
    CHECK(!is_read(EVENT_SPAN, port, strlen(port))); /* 65536 */
    CHECK(!is_read(EVENT_SPAN, ip, strlen(ip)));     /* longer than the rest */
    CHECK(packed_newer(text_of("2")) == 2 && packed_newer(text_of("o")) == 63);
    CHECK(!packed_newer(text_of("")) && !packed_newer(text_of("1")) && !packed_newer(text_of("p")));
}

/* ---- records */

/* Reads a log from the beginning of a text. rest: the length of the log after the record. */
static bool is_record(const char *text, size_t length, size_t rest, struct log_record *record)
{
    struct text log = {text, length};

    *record = (struct log_record){.type = ' '};
    return log_next(&log, record) && log.length == rest && log.data == text + length - rest;
}

static bool is_same(const struct log_record *a, const struct log_record *b)
{
    return a->type == b->type && a->offset_ns == b->offset_ns && a->bits == b->bits &&
           a->port == b->port && text_equal(a->key, b->key) && text_equal(a->value, b->value) &&
           memcmp(&a->link, &b->link, sizeof(a->link)) == 0;
}

#define MOMENT     "1234567o"
#define MOMENT_NS  (-INT64_C(3910482775935))
#define LONG       "@83EfQY^Lk?"
#define HEX16      "0123456789:;<=>?"
#define LONG_BITS  UINT64_C(0xfedcba9876543210)
#define SIXTEEN    "0123456789abcdef"
#define SIXTY_FOUR SIXTEEN SIXTEEN SIXTEEN SIXTEEN
#define NAME_127   SIXTY_FOUR SIXTEEN SIXTEEN SIXTEEN "0123456789abcde"

/* A record is not read if a part of it is missing, or if another character stands in place of one
 * of its digits. */
TEST(test_records)
{
    static const struct {
        const char *text;
        size_t digits; /* after the type */
        struct log_record record;
    } cases[] = {
        {"000" MOMENT, 10, {'a', .key = {"emerg", 5}, .offset_ns = MOMENT_NS}},
        {"100" MOMENT, 10, {'a', .key = {"alert", 5}, .offset_ns = MOMENT_NS}},
        {"200" MOMENT, 10, {'a', .key = {"crit", 4}, .offset_ns = MOMENT_NS}},
        {"300" MOMENT, 10, {'a', .key = {"err", 3}, .offset_ns = MOMENT_NS}},
        {"400" MOMENT, 10, {'a', .key = {"warning", 7}, .offset_ns = MOMENT_NS}},
        {"500" MOMENT, 10, {'a', .key = {"notice", 6}, .offset_ns = MOMENT_NS}},
        {"601" WORD SIXTY_FOUR, 10, {'a', .value = {SIXTY_FOUR, 64}}},
        {"700" MOMENT, 10, {'a', .key = {"debug", 5}, .offset_ns = MOMENT_NS}},
        {"(44" MOMENT "step", 10, {'(', .bits = 2, .value = {"step", 4}, .offset_ns = MOMENT_NS}},
        {"(o9" WORD NAME_127, 10, {'(', .bits = 4, .value = {NAME_127, 127}}},
        {")" MOMENT, 8, {')', .offset_ns = MOMENT_NS}},
        {"T" MOMENT, 8, {'T', .offset_ns = MOMENT_NS}},
        {"#123o", 4, {'#', .bits = 0xfc3081}},
        {"o", 0, {.type = 'o'}},
        {"s0110" SIXTY_FOUR "x", 4, {'s', .key = {SIXTY_FOUR, 64}, .value = {"x", 1}}},
        {"I30" LONG "key", 13, {'i', .bits = LONG_BITS, .key = {"key", 3}}},
        {"U01" LONG SIXTY_FOUR, 13, {'u', .bits = LONG_BITS, .key = {SIXTY_FOUR, 64}}},
        {"D00" LONG, 13, {'d', .bits = LONG_BITS}},
        {"B10" WORD "000k", 13, {'b', .key = {"k", 1}}},
        {"l" HEX16 "10000000" WORD "01000000" WORD, 48, {'l', .link = {LONG_BITS, 1, 16}}},
        {"r????0000" WORD "1010ab", 20, {'r', .port = 65535, .key = {"a", 1}, .value = {"b", 1}}},
        {"e12340000" WORD "0000", 20, {'e', .port = 0x4321}},
        {"n01" SIXTY_FOUR, 2, {'n', .value = {SIXTY_FOUR, 64}}},
        {"t" HEX16, 16, {'t', .offset_ns = (int64_t)LONG_BITS}},
        {"z01" SIXTY_FOUR, 2, {.type = '?'}},
        {"a10x", 2, {.type = '?'}},
        {"A00", 2, {.type = '?'}},
        {"Z00", 2, {.type = '?'}},
    };
    /* ports and numbers that are too large, and types that are no letters */
    static const char *const damaged[] = {
        ("r00001000" WORD "0000"), ("I00" WORD "00@"), ("800" WORD), "@00", "[00", "`00", "{00"};
    struct log_record record;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t length = strlen(cases[i].text);
        char text[300];

        (void)snprintf(text, sizeof(text), "%s))", cases[i].text);
        for (size_t cut = 0; cut < length; cut++)
            CHECK(!is_record(text, cut, 0, &record));
        for (size_t rest = 0; rest <= 2; rest++)
            CHECK(is_record(text, length + rest, rest, &record) &&
                  is_same(&record, &cases[i].record));
        for (size_t digit = 1; digit <= cases[i].digits; digit++) {
            const char right = text[digit];

            for (const char *wrong = "/p"; *wrong; wrong++) {
                text[digit] = *wrong;
                CHECK(!is_record(text, length, 0, &record));
            }
            text[digit] = right;
        }
    }
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        CHECK(!is_record(damaged[i], strlen(damaged[i]), 0, &record));
}

CHECK_MAIN
