/*
 * The columns of a thread's time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "usage.h"

#include "tools/base/text.h"

#include <inttypes.h>
#include <stdio.h>

#define CELL (USAGE_COLUMNS / 3 - 1)

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

void usage_put_heads(void)
{
    put_cell("on CPU");
    put_cell("wait");
    put_cell("block");
}

void usage_put(const struct thread_time *time)
{
    put_cell(time->is_known ? short_text(time->on_cpu_us).text : "-");
    put_cell(time->is_apart ? short_text(time->waiting_us).text : time->is_known ? "off" : "-");
    put_cell(time->is_known ? short_text(time->blocked_us).text : "-");
}

void usage_explain(const struct thread_time *time, int64_t self_us)
{
    struct thread_time_part parts[THREAD_TIME_PARTS];
    const size_t count = thread_time_parts(time, self_us, parts);

    for (size_t i = 0; i < count; i++)
        printf("%s%s %s", i ? ", " : "", parts[i].what, time_text(parts[i].us).text);
}
