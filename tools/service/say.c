/*
 * What a service says.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "say.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LINES    16
#define LINE_MAX 1024

static struct line {
    int64_t time_ns; /* 0: none */
    char text[LINE_MAX];
} lines[LINES];

static unsigned next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both */
static const char *beginning;
static bt_logging_level least;

int64_t wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void say_open(const char *name, const char *level)
{
    beginning = name;
    least = strcmp(level, "none") == 0    ? BT_LOGGING_LEVEL_NONE
            : strcmp(level, "error") == 0 ? BT_LOGGING_LEVEL_ERROR
            : strcmp(level, "info") == 0  ? BT_LOGGING_LEVEL_INFO
                                          : BT_LOGGING_LEVEL_WARNING;
}

bt_logging_level say_level(void)
{
    return least;
}

static void keep(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    pthread_mutex_lock(&lock);
    lines[next].time_ns = wall_clock_ns();
    (void)snprintf(lines[next].text, LINE_MAX, "%s", text);
    next = (next + 1) % LINES;
    pthread_mutex_unlock(&lock);
}

void say(bt_logging_level level, const char *format, ...)
{
    char text[LINE_MAX];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    keep(text);
    if (level >= least)
        fprintf(stderr, "%s: %s\n", beginning, text);
}

void say_line(const char *source, const char *line)
{
    char text[LINE_MAX * 4];

    (void)snprintf(text, sizeof(text), "%s: %s", source, line);
    keep(text);
    fprintf(stderr, "%s: %s\n", beginning, text);
}

json_t *json_time(int64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / 1000000000);
    char date[32], text[48];
    struct tm tm;

    if (time_ns == 0 || !gmtime_r(&seconds, &tm) ||
        !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
        return json_null();
    (void)snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(time_ns / 1000000 % 1000));
    return json_string(text);
}

json_t *say_last(void)
{
    json_t *list = json_array();

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; list && i < LINES; i++) {
        const struct line *line = &lines[(next + i) % LINES];

        if (line->time_ns &&
            json_array_append_new(list, json_pack("{so, ss%}", "time", json_time(line->time_ns),
                                                  "text", line->text, strlen(line->text))) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return list;
}
