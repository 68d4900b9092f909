/* SPDX-License-Identifier: BSD-2-Clause */
#include "say.h"

#include "babeltrace-plugin/base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>

#define LINES    16 /* kinds of lines for `blkin status` */
#define LINE_MAX 1024

static struct line {
    int64_t time_ns; /* 0: none */
    uint64_t order;
    uint64_t kind;  /* the same for lines that differ only in words with a digit */
    uint64_t count; /* the lines of this kind; text is the last one */
    int id;
    char text[LINE_MAX];
} lines[LINES];

static uint64_t last_order;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of lines and last_order */
static const char *prefix = "blkin";
static bt_logging_level least_level;

void say_open(const char *name, const char *level)
{
    prefix = name;
    least_level = strcmp(level, "none") == 0    ? BT_LOGGING_LEVEL_NONE
                  : strcmp(level, "error") == 0 ? BT_LOGGING_LEVEL_ERROR
                  : strcmp(level, "info") == 0  ? BT_LOGGING_LEVEL_INFO
                                                : BT_LOGGING_LEVEL_WARNING;
}

bt_logging_level say_level(void)
{
    return least_level;
}

/* Returns FNV-1a of the words without a digit. A word with a digit is a number, an id or a time. */
static uint64_t kind_of(const char *text)
{
    uint64_t kind = UINT64_C(14695981039346656037);

    while (*text) {
        const size_t length = strcspn(text, " ") + 1;
        const char *end = text + length - 1;
        bool has_digit = false;

        for (const char *c = text; c < end; c++)
            has_digit |= *c >= '0' && *c <= '9';
        for (const char *c = text; c < end && !has_digit; c++)
            kind = (kind ^ (unsigned char)*c) * UINT64_C(1099511628211);
        text = *end ? end + 1 : end;
    }
    return kind;
}

/* Returns the line of this kind, or the oldest line. */
static struct line *line_of(uint64_t kind)
{
    struct line *oldest = lines;

    for (unsigned i = 0; i < LINES; i++) {
        if (lines[i].time_ns && lines[i].kind == kind)
            return &lines[i];
        if (lines[i].order < oldest->order)
            oldest = &lines[i];
    }
    oldest->count = 0;
    return oldest;
}

static void store_line(int id, const char *text)
{
    const uint64_t kind = kind_of(text);
    struct line *line;

    pthread_mutex_lock(&lock);
    line = line_of(kind);
    line->time_ns = wall_clock_ns();
    line->order = ++last_order;
    line->kind = kind;
    line->count++;
    line->id = id;
    (void)snprintf(line->text, LINE_MAX, "%s", text);
    pthread_mutex_unlock(&lock);
}

static void print_line(int id, const char *text)
{
    fprintf(stderr, "BK%d %s: %s\n", id, prefix, text);
}

void say(enum message_id id, const char *format, ...)
{
    char text[LINE_MAX];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    string_make_plain(text);
    store_line((int)id, text);
    if (message_level(id) >= least_level)
        print_line((int)id, text);
}

void say_account(enum message_id id, const char *format, ...)
{
    char text[LINE_MAX * 4];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    string_make_plain(text);
    print_line((int)id, text);
}

/* Reads "BK1234 " at the beginning of a line, and returns the text after it. */
static const char *take_id(const char *line, int *id)
{
    char *end;

    if (strncmp(line, "BK", 2) != 0 || strspn(line + 2, "0123456789") != 4 || line[6] != ' ')
        return line;
    *id = (int)strtol(line + 2, &end, 10);
    return end + 1;
}

/* Skips the prefix of this service or of the sink, because say_line() writes the prefix itself. */
static const char *skip_prefix(const char *line)
{
    const size_t length = strlen(prefix);

    if (strncmp(line, prefix, length) == 0 && strncmp(line + length, ": ", 2) == 0)
        return line + length + 2;
    return strncmp(line, "blkin: ", 7) == 0 ? line + 7 : line;
}

void say_line(const char *source, const char *line)
{
    char text[LINE_MAX * 4];
    int id = BK1001;

    line = skip_prefix(take_id(skip_prefix(line), &id));
    (void)snprintf(text, sizeof(text), "%s: %s", source, line);
    string_make_plain(text);
    store_line(id, text);
    print_line(id, text);
}

static int by_order(const void *a, const void *b)
{
    const struct line *left = *(const struct line *const *)a,
                      *right = *(const struct line *const *)b;

    return (left->order > right->order) - (left->order < right->order);
}

json_t *say_last(void)
{
    json_t *list = json_array();
    const struct line *sorted[LINES];

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < LINES; i++)
        sorted[i] = &lines[i];
    qsort(sorted, LINES, sizeof(*sorted), by_order);
    for (unsigned i = 0; list && i < LINES; i++) {
        const struct line *line = sorted[i];

        if (line->time_ns &&
            json_array_append_new(
                list, json_pack("{so, sI, so, ss%}", "time", json_time(line->time_ns), "count",
                                (json_int_t)line->count, "id", json_sprintf("BK%d", line->id),
                                "text", line->text, strlen(line->text))) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return list;
}

/* ---- levels ---------------------------------------------------------------------------------- */

bt_logging_level message_level(enum message_id id)
{
    switch (id) {
#define M(number, level, subject, text) \
    case BK##number:                    \
        return BT_LOGGING_LEVEL_##level;
#include "messages.def"
#undef M
    }
    return BT_LOGGING_LEVEL_ERROR;
}
