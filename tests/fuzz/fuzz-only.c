/*
 * Fuzzes the lines that name traces: any bytes are taken or refused, and what is refused is named;
 * lines as they should be want just the events that they say, and give their reasons. What was
 * found of spans with ids that meet is told as JSON, and is what there was.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/agent/only.h"

#include <inttypes.h>
#include <jansson.h>

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#define LINES_MAX 12
#define SPANS_MAX 40

static struct input source;
static struct error error;

/* ---- any bytes ---- */

static bool is_word(struct text *rest, size_t least, size_t most, const char *of)
{
    size_t length = 0;

    while (length < rest->length && strchr(of, rest->data[length]) && rest->data[length])
        length++;
    if (length < least || length > most || length == rest->length || rest->data[length] != ' ')
        return false;
    while (length < rest->length && rest->data[length] == ' ')
        length++;
    rest->data += length;
    rest->length -= length;
    return true;
}

/* But for the numbers' sizes. */
static bool looks_good(struct text line, bool is_first)
{
    struct text rest = line;
    const bool is_clock = is_first && line.length > 6 && memcmp(line.data, "clock ", 6) == 0;
    const bool has_id =
        is_word(&rest, 1, 1, "*") || is_word(&rest, 16, 32, "0123456789abcdefABCDEF");

    return is_clock || (has_id && is_word(&rest, 1, SIZE_MAX, "0123456789") &&
                        is_word(&rest, 1, SIZE_MAX, "0123456789") && rest.length >= 1 &&
                        rest.length <= ONLY_WHY_MAX && !memchr(rest.data, '\0', rest.length));
}

/* A byte from 128 on is a word, since bytes alone are no line for long. */
static struct text take_words(void)
{
    static const char *const words[] = {"* ", "0123456789abcdef ", "clock ", "12 ", "0 ", "why\n"};
    enum { WORDS = sizeof(words) / sizeof(words[0]) };
    static char bytes[64 << 10];
    size_t length = 0;

    while (source.at < source.end) {
        const uint8_t byte = *source.at++;
        const char own[2] = {(char)byte, '\0'};
        const struct text word = byte < 128 ? (struct text){own, 1} : text_of(words[byte % WORDS]);

        memcpy(bytes + length, word.data, word.length);
        length += word.length;
    }
    return (struct text){bytes, length};
}

static void try_bytes(void)
{
    const struct text text = take_words();
    char *copy = malloc(text.length ? text.length : 1); /* of just its size */
    struct only *only;
    struct text line = {copy, 0};

    (void)text_copy(copy, text);
    error.text[0] = '\0';
    only = only_of_text((struct text){copy, text.length}, "F", &error);
    REQUIRE(!only == (error.text[0] == 'F'));
    for (size_t i = 0; only && i <= text.length; i++) {
        if (i < text.length && copy[i] != '\n')
            continue;
        line.length = (size_t)(copy + i - line.data);
        REQUIRE(looks_good(line, line.data == copy) || (i == text.length && i && line.length == 0));
        line.data = copy + i + 1;
    }
    only_free(only);
    free(copy);
}

/* ---- lines as they should be ---- */

struct model {
    bool is_any;
    uint64_t high, low;
    int64_t from_ns, until_ns;
    char why[32];
};

static struct model lines[LINES_MAX];
static unsigned line_count;

/* Few, so that they meet; some have but the half. */
static uint64_t take_id(void)
{
    static const uint64_t ids[] = {0, 1, 2, UINT64_C(1) << 63, UINT64_MAX};

    return ids[take(&source, 1) % 5];
}

static struct model take_line(void)
{
    struct model line = {.is_any = take(&source, 1) < 32, .high = take_id(), .low = take_id()};

    if (!(line.high | line.low))
        line.low = 7;
    line.from_ns = (int64_t)(take(&source, 1) % 16);
    line.until_ns = (int64_t)(take(&source, 1) % 32);
    if (line.until_ns && line.until_ns <= line.from_ns)
        line.until_ns = line.from_ns + 1;
    snprintf(line.why, sizeof(line.why), "why %u", line_count);
    return line;
}

static size_t put_line(char *at, size_t room, const struct model *line)
{
    char id[40] = "*";

    if (!line->is_any && line->high)
        snprintf(id, sizeof(id), "%016" PRIx64 "%016" PRIX64, line->high, line->low);
    else if (!line->is_any)
        snprintf(id, sizeof(id), "%016" PRIx64, line->low);
    return (size_t)snprintf(at, room, "%s %" PRId64 " %" PRId64 " %s\n", id, line->from_ns,
                            line->until_ns, line->why);
}

static bool is_of(const struct model *line, uint64_t high, uint64_t low)
{
    return line->is_any ||
           (line->low == low && (line->high == high || line->high == 0 || high == 0));
}

static void check_wants(const struct only *only)
{
    const uint64_t high = take_id(), low = take_id();
    const int64_t time_ns = (int64_t)(take(&source, 1) % 40);
    const struct model *first = NULL;
    bool is_wanted = false;
    struct text why;

    for (unsigned i = 0; i < line_count; i++) {
        if (!is_of(&lines[i], high, low))
            continue;
        first = first ? first : &lines[i];
        is_wanted |=
            time_ns >= lines[i].from_ns && (!lines[i].until_ns || time_ns < lines[i].until_ns);
    }
    REQUIRE(only_wants(only, high, low, time_ns) == is_wanted);
    why = only_why(only, high, low);
    REQUIRE(first ? text_is(why, first->why) : why.length == 0);
}

static size_t take_lines(char *text, size_t size)
{
    size_t length = 0;

    line_count = 0;
    for (uint64_t count = 1 + take(&source, 1) % LINES_MAX; line_count < count; line_count++) {
        lines[line_count] = take_line();
        length += put_line(text + length, size - length, &lines[line_count]);
    }
    return length;
}

static void try_lines(void)
{
    char text[LINES_MAX * 128];
    const size_t length = take_lines(text, sizeof(text));
    struct only *only = only_of_text((struct text){text, length}, "F", &error);

    REQUIRE(only);
    while (source.at < source.end)
        check_wants(only);
    only_free(only);
}

/* ---- what was found ---- */

static struct span spans[SPANS_MAX];
static unsigned span_count;

static bool has_id(json_t *list, uint64_t id)
{
    char text[17];
    size_t i, found = 0;
    json_t *element;

    snprintf(text, sizeof(text), "%016" PRIx64, id);
    json_array_foreach(list, i, element) found += strcmp(json_string_value(element), text) == 0;
    REQUIRE(found <= 1);
    return found == 1;
}

/* By their lower halves: those of one may be told as several traces, or as one. */
static void check_span(json_t *traces, const struct span *span)
{
    bool is_told = false;
    json_t *trace;
    char low[17];
    size_t i;

    snprintf(low, sizeof(low), "%016" PRIx64, span->trace_id);
    json_array_foreach(traces, i, trace)
    {
        const char *id = json_string_value(json_object_get(trace, "id"));

        is_told |= strcmp(id + 16, low) == 0 && has_id(json_object_get(trace, "have"), span->id) &&
                   (!span->parent_id || has_id(json_object_get(trace, "have"), span->parent_id) ||
                    has_id(json_object_get(trace, "want"), span->parent_id));
    }
    REQUIRE(is_told);
}

/* No more than that: somebody's parent, and none of them. */
static void check_wanted(json_t *trace)
{
    json_t *want;
    size_t i;

    json_array_foreach(json_object_get(trace, "want"), i, want)
    {
        const uint64_t id = strtoull(json_string_value(want), NULL, 16);
        bool is_parent = false;

        for (unsigned at = 0; at < span_count; at++)
            is_parent |= spans[at].parent_id == id;
        REQUIRE(is_parent && !has_id(json_object_get(trace, "have"), id));
    }
}

static void check_found(const char *text)
{
    json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *trace;
    json_t *traces = json_object_get(found, "traces");
    json_int_t told = 0;
    size_t i;

    REQUIRE(found && json_is_array(traces));
    json_array_foreach(traces, i, trace)
    {
        REQUIRE(strlen(json_string_value(json_object_get(trace, "id"))) == 32);
        told += json_integer_value(json_object_get(trace, "spans"));
        check_wanted(trace);
    }
    REQUIRE(told == (json_int_t)span_count);
    for (unsigned at = 0; at < span_count; at++)
        check_span(traces, &spans[at]);
    json_decref(found);
}

static void try_found(void)
{
    struct only *only = only_of_text(text_of("* 0 0 x\n"), "F", &error);
    char *text;

    REQUIRE(only);
    for (span_count = 0; span_count < SPANS_MAX && source.at < source.end; span_count++) {
        spans[span_count] = (struct span){.trace_id_high = take_id(), .trace_id = take_id()};
        spans[span_count].id = take(&source, 1) % 8 + 1;
        spans[span_count].parent_id = take(&source, 1) % 12;
        only_note(only, &spans[span_count]);
    }
    text = only_found(only);
    REQUIRE(text);
    check_found(text);
    free(text);
    only_free(only);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t choice;

    random_number = sum_of(data, size);
    source = (struct input){data, data + size};
    choice = take(&source, 1);
    if (choice < 100)
        try_bytes();
    else if (choice < 250)
        try_lines();
    else
        try_found();
    return 0;
}

#pragma clang attribute pop
