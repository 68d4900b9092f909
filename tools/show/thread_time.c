/*
 * The time of a span's thread: on a CPU, waiting for one, blocked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "thread_time.h"

#include "../text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL      (THREAD_TIME_COLUMNS / 3 - 1)
#define US_DIGITS 15

/* Whoever has made the spans: numbers only, and none that makes a sum overflow. */
static bool read_us(const struct json_span *span, const char *key, int64_t *us)
{
    const char *text = json_string_value(json_object_get(json_object_get(span->json, "tags"), key));
    const size_t digits = text ? strspn(text, "0123456789") : 0;

    *us = 0;
    if (digits == 0 || digits > US_DIGITS || text[digits])
        return false;
    while (*text)
        *us = *us * 10 + (*text++ - '0');
    return true;
}

struct thread_time thread_time_of(const struct json_span *span)
{
    struct thread_time time = {0};

    time.is_known = read_us(span, "usage.cpu_us", &time.on_cpu_us) &&
                    read_us(span, "usage.off_cpu_us", &time.blocked_us);
    time.is_apart = time.is_known && read_us(span, "usage.run_delay_us", &time.waiting_us);
    if (time.waiting_us > time.blocked_us)
        time.waiting_us = time.blocked_us;
    time.blocked_us -= time.waiting_us;
    return time;
}

/* ---- the columns */

/* In five columns: "950us", "3.2ms", "32ms", "12s" */
static struct time_text short_text(int64_t us)
{
    static const struct {
        int64_t us;
        const char *name;
    } units[] = {{1, "us"}, {1000, "ms"}, {1000000, "s"}, {INT64_C(3600000000), "h"}};
    struct time_text text;
    size_t unit = 0;
    int64_t tenths;

    /* 999.6 ms is no "1000ms" */
    while (unit < 3 && (us + units[unit].us / 2) / units[unit].us >= (unit == 2 ? 10000 : 1000))
        unit++;
    tenths = (us * 10 + units[unit].us / 2) / units[unit].us;
    if (unit > 0 && tenths < 100)
        snprintf(text.text, sizeof(text.text), "%" PRId64 ".%" PRId64 "%s", tenths / 10,
                 tenths % 10, units[unit].name);
    else
        snprintf(text.text, sizeof(text.text), "%" PRId64 "%s",
                 (us + units[unit].us / 2) / units[unit].us, units[unit].name);
    return text;
}

static void put_cell(const char *text)
{
    printf(" %*.*s", CELL, CELL, text);
}

void thread_time_put_heads(void)
{
    put_cell("on CPU");
    put_cell("wait");
    put_cell("block");
}

void thread_time_put(const struct thread_time *time)
{
    put_cell(time->is_known ? short_text(time->on_cpu_us).text : "-");
    put_cell(time->is_apart ? short_text(time->waiting_us).text : time->is_known ? "off" : "-");
    put_cell(time->is_known ? short_text(time->blocked_us).text : "-");
}

/* ---- the answer */

struct part {
    const char *what;
    int64_t us;
};

/* The longest one first; equal ones stay as they are. */
static void sort(struct part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && parts[j].us > parts[j - 1].us; j--) {
            const struct part part = parts[j];

            parts[j] = parts[j - 1];
            parts[j - 1] = part;
        }
    }
}

void thread_time_explain(const struct thread_time *time, int64_t self_us)
{
    const int64_t rest = self_us - time->on_cpu_us - time->waiting_us - time->blocked_us;
    struct part parts[] = {
        {time->is_apart ? "blocked" : "off CPU", time->blocked_us},
        {"waiting for a CPU", time->waiting_us},
        {"on CPU", time->on_cpu_us},
        {"no thread worked for it", rest > 2 ? rest : 0}, /* as all of them are rounded */
    };
    const size_t count = sizeof(parts) / sizeof(parts[0]);

    sort(parts, count);
    for (size_t i = 0; i < count && (parts[i].us > 0 || i == 0); i++)
        printf("%s%s %s", i ? ", " : "", parts[i].what, time_text(parts[i].us).text);
}
