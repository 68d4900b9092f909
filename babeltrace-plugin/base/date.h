/*
 * Times in ns since 1970: the current time, and the text form of documents,
 * "2026-11-21T11:33:27.981Z".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_DATE_H
#define BLKIN_BASE_DATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define DATE_MAX 64

static inline int64_t wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns false if time_ns is 0 (no time) or negative. */
static inline bool date_write(int64_t time_ns, char text[DATE_MAX])
{
    const time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm tm;
    size_t length;

    if (time_ns <= 0 || !gmtime_r(&seconds, &tm))
        return false;
    length = strftime(text, DATE_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + length, DATE_MAX - length, ".%03dZ", (int)(time_ns / 1000000 % 1000));
    return true;
}

/* Returns 0 if the text is no date. NULL is allowed. */
static inline int64_t date_read(const char *text)
{
    struct tm tm = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    const int64_t seconds = rest ? (int64_t)timegm(&tm) : 0;
    int milliseconds = 0;

    if (seconds <= 0 || seconds >= INT64_MAX / 1000000000)
        return 0;
    (void)sscanf(rest, ".%3d", &milliseconds);
    return seconds * 1000000000 + (int64_t)milliseconds * 1000000;
}

/* Returns the text form, or JSON's null if time_ns is 0 or negative. NULL: out of memory. */
static inline json_t *json_time(int64_t time_ns)
{
    char text[DATE_MAX];

    return date_write(time_ns, text) ? json_string(text) : json_null();
}

/* Returns the time in a member of a JSON object; 0: none. */
static inline int64_t json_time_in(const json_t *object, const char *name)
{
    return date_read(json_string_value(json_object_get(object, name)));
}

#endif
