/*
 * A JSON document as a person reads it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show_json.h"

#include "text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
    char shown[64];

    (void)snprintf(shown, sizeof(shown), "%s", name);
    for (char *c = shown; *c; c++) {
        if (*c == '_')
            *c = ' ';
    }
    put_spaces((size_t)indent);
    put(shown, sizeof(shown));
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
    const size_t taken = put(text, 2000);

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

static bool is_worth_it(const json_t *object)
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
        put(text, sizeof(text));
    }
    putchar('\n');
}

static void show_member(const char *name, const json_t *value, int indent)
{
    char text[2048];

    if (json_is_object(value) && is_worth_it(value)) {
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
        put(text, sizeof(text));
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
