/*
 * Foreign text on a terminal.
 *
 * Escapes control characters, characters that change the direction of writing, characters that the
 * locale cannot show, and invalid UTF-8.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "text.h"

#include "babeltrace-plugin/base/utf8.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define DEFAULT_WIDTH 80

struct text_glyph {
    char text[16];
    size_t columns;
};

static bool is_utf8_off;

bool has_utf8(void)
{
    return !is_utf8_off && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void utf8_off(void)
{
    is_utf8_off = true;
}

bool text_changes_direction(uint32_t code)
{
    return code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Sets *glyph to the first character of the text, or to its escape. Returns the text after it. */
static const char *next_glyph(const char *text, struct text_glyph *glyph)
{
    uint32_t code;
    const size_t length = utf8_decode(text, &code);
    const int width = length && (code < 0x80 || has_utf8()) ? wcwidth((wchar_t)code) : -1;

    if (width >= 0 && !text_changes_direction(code)) {
        memcpy(glyph->text, text, length);
        glyph->text[length] = '\0';
        glyph->columns = (size_t)width;
    } else {
        glyph->columns = (size_t)snprintf(glyph->text, sizeof(glyph->text),
                                          length < 2 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", code);
    }
    return text + (length ? length : 1);
}

size_t columns(const char *text)
{
    size_t taken = 0;
    struct text_glyph glyph;

    while (*text) {
        text = next_glyph(text, &glyph);
        taken += glyph.columns;
    }
    return taken;
}

size_t put_text(const char *text, size_t room)
{
    const bool whole = columns(text) <= room;
    const size_t limit = whole || room == 0 ? room : room - 1;
    size_t taken = 0;
    struct text_glyph glyph;

    while (*text) {
        text = next_glyph(text, &glyph);
        if (taken + glyph.columns > limit)
            break;
        fputs(glyph.text, stdout);
        taken += glyph.columns;
    }
    if (!whole && room) {
        fputs(has_utf8() ? "…" : "~", stdout);
        taken++;
    }
    return taken;
}

void put_spaces(size_t count)
{
    printf("%*s", (int)count, "");
}

struct screen screen(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return (struct screen){DEFAULT_WIDTH, 0};
    return (struct screen){size.ws_col < SCREEN_WIDTH_MIN ? SCREEN_WIDTH_MIN : size.ws_col,
                           size.ws_row};
}

struct time_text time_text(int64_t us)
{
    struct time_text time;
    const double value = (double)us;

    if (us < 1000)
        snprintf(time.text, sizeof(time.text), "%" PRId64 " us", us);
    else if (us < 1000000)
        snprintf(time.text, sizeof(time.text), "%.3f ms", value / 1e3);
    else if (us < INT64_C(100000000))
        snprintf(time.text, sizeof(time.text), "%.3f s", value / 1e6);
    else
        snprintf(time.text, sizeof(time.text), "%.0f s", value / 1e6);
    return time;
}

struct date_text date_text(int64_t ns, int digits)
{
    struct date_text date = {"at an unknown time"};
    const time_t seconds = (time_t)(ns / 1000000000);
    const int rest = (int)(ns % 1000000000 / (digits == 3 ? 1000000 : 1000));
    struct tm local;
    size_t length;

    if (ns == 0 || !localtime_r(&seconds, &local))
        return date;
    length = strftime(date.text, sizeof(date.text), "%Y-%m-%d %H:%M:%S", &local);
    (void)snprintf(date.text + length, sizeof(date.text) - length, ".%0*d", digits, rest);
    return date;
}

/* ---- a JSON document as a person reads it ---------------------------------------------------- */

#define JSON_NAME_WIDTH 26

/* Converts "2026-11-21T11:33:27.981Z" to local time, without today's date. Copies other text. */
static void show_text(const char *text, char *shown, size_t size)
{
    struct tm utc = {0}, local, today;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    const time_t now = time(NULL);
    time_t then;

    if (!rest || *rest != '.' || text[strlen(text) - 1] != 'Z') {
        (void)snprintf(shown, size, "%s", text);
        return;
    }
    then = timegm(&utc);
    localtime_r(&then, &local);
    localtime_r(&now, &today);
    (void)strftime(shown, size,
                   local.tm_yday == today.tm_yday && local.tm_year == today.tm_year
                       ? "%H:%M:%S"
                       : "%Y-%m-%d %H:%M:%S",
                   &local);
}

/* Formats a string, number or truth value. Returns false for values that show_json() leaves out. */
static bool value_text(const json_t *value, char *text, size_t size)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        show_text(json_string_value(value), text, size);
        return *text != '\0';
    case JSON_INTEGER:
        (void)snprintf(text, size, "%" PRId64, (int64_t)json_integer_value(value));
        return json_integer_value(value) != 0;
    case JSON_REAL:
        (void)snprintf(text, size, "%.3f", json_real_value(value));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        (void)snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
        return true;
    default:
        return false;
    }
}

static void put_name(const char *name, int indent)
{
    put_spaces((size_t)indent);
    put_text(name, 64);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define COLUMNS_MAX 16

struct column {
    const char *key;
    size_t width;
};

static const char *cell(const json_t *row, const char *key, char *text, size_t size)
{
    const json_t *value = json_object_get(row, key);

    if (!value || (!value_text(value, text, size) && !json_is_integer(value)))
        (void)snprintf(text, size, "-");
    return text;
}

/* Takes the columns from the first row, as all rows have the same. Leaves out nested values. */
static size_t columns_of(const json_t *rows, struct column list[COLUMNS_MAX])
{
    size_t count = 0, i;
    const char *key;
    const json_t *value, *row;
    char text[256];

    json_object_foreach(json_array_get(rows, 0), key, value)
    {
        if (count < COLUMNS_MAX && !json_is_object(value) && !json_is_array(value))
            list[count++] = (struct column){key, strlen(key)};
    }
    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; c < count; c++) {
            const size_t width = columns(cell(row, list[c].key, text, sizeof(text)));

            list[c].width = width > list[c].width ? width : list[c].width;
        }
    }
    return count;
}

static void put_cell(const char *text, const struct column *column, bool is_last)
{
    const size_t taken = put_text(text, 2000);

    if (!is_last)
        put_spaces(column->width > taken ? column->width - taken + 2 : 2);
}

static void show_table(const json_t *rows, int indent)
{
    struct column list[COLUMNS_MAX];
    const size_t count = columns_of(rows, list);
    const json_t *row;
    char text[2048];
    size_t i;

    put_spaces((size_t)indent);
    for (size_t c = 0; c < count; c++)
        put_cell(list[c].key, &list[c], c + 1 == count);
    putchar('\n');
    json_array_foreach(rows, i, row)
    {
        put_spaces((size_t)indent);
        for (size_t c = 0; c < count; c++)
            put_cell(cell(row, list[c].key, text, sizeof(text)), &list[c], c + 1 == count);
        putchar('\n');
    }
}

/* ---- objects --------------------------------------------------------------------------------- */

static void show_object(const json_t *object, int indent);

/* Returns whether show_object() may print a member of the object. */
static bool has_shown_member(const json_t *object)
{
    const char *key;
    const json_t *value;
    char text[2048];

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (json_is_object(value) || json_is_array(value) || value_text(value, text, sizeof(text)))
            return true;
    }
    return false;
}

static void put_padded_name(const char *name, int indent)
{
    const size_t taken = strlen(name) + (size_t)indent;

    put_name(name, indent);
    put_spaces(taken < JSON_NAME_WIDTH ? JSON_NAME_WIDTH - taken : 1);
}

/* Prints a list of strings and numbers in one line. */
static void show_list(const char *name, const json_t *values, int indent)
{
    const json_t *value;
    char text[2048];
    size_t i;

    put_padded_name(name, indent);
    json_array_foreach(values, i, value)
    {
        if (i)
            fputs(", ", stdout);
        text[0] = '\0';
        (void)value_text(value, text, sizeof(text));
        put_text(text, sizeof(text));
    }
    putchar('\n');
}

static void show_member(const char *name, const json_t *value, int indent)
{
    char text[2048];

    if (json_is_object(value) && has_shown_member(value)) {
        put_name(name, indent);
        putchar('\n');
        show_object(value, indent + 2);
    } else if (json_is_object(json_array_get(value, 0))) {
        put_name(name, indent);
        putchar('\n');
        show_table(value, indent + 2);
    } else if (json_array_size(value)) {
        show_list(name, value, indent);
    } else if (value_text(value, text, sizeof(text))) {
        put_padded_name(name, indent);
        put_text(text, sizeof(text));
        putchar('\n');
    }
}

static void show_object(const json_t *object, int indent)
{
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) show_member(key, value, indent);
}

void show_json(const json_t *json)
{
    show_object(json, 0);
}
