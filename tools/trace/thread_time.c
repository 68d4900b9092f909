/*
 * The time of a span's thread: on a CPU, waiting for one, blocked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "thread_time.h"

#include "traces.h"

#include <string.h>

#define US_DIGITS 15

/* Accepts only numbers that cannot overflow a sum, as any program may have made the spans. */
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

/* Returns the node with usage tags: the node itself or its nearest ancestor of the same service. */
static uint32_t thread_time_around(const struct trace_model *model, uint32_t node)
{
    const uint32_t service = model->spans[node].service;

    while (node != TRACE_NONE && model->spans[node].service == service) {
        if (thread_time_of(span_of(model, node)).is_known)
            return node;
        node = model->nodes[node].parent;
    }
    return TRACE_NONE;
}

/* Sorts by length, the longest first; stable. */
static void sort(struct thread_time_part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && parts[j].us > parts[j - 1].us; j--) {
            const struct thread_time_part part = parts[j];

            parts[j] = parts[j - 1];
            parts[j - 1] = part;
        }
    }
}

static size_t thread_time_parts(const struct thread_time *time, int64_t self_us,
                                struct thread_time_part parts[THREAD_TIME_PARTS])
{
    const int64_t rest = self_us - time->on_cpu_us - time->waiting_us - time->blocked_us;
    const struct thread_time_part all[THREAD_TIME_PARTS] = {
        {time->is_apart ? "blocked" : "off CPU", time->blocked_us},
        {"waiting for a CPU", time->waiting_us},
        {"on CPU", time->on_cpu_us},
        {"no thread worked for it", rest > 2 ? rest : 0}, /* tolerates rounding */
    };
    size_t count = 1;

    memcpy(parts, all, sizeof(all));
    sort(parts, THREAD_TIME_PARTS);
    while (count < THREAD_TIME_PARTS && parts[count].us > 0)
        count++;
    return count;
}

size_t thread_time_tell(const struct trace_model *model, uint32_t node, uint32_t *around,
                        struct thread_time_part parts[THREAD_TIME_PARTS])
{
    struct thread_time time;

    *around = thread_time_around(model, node);
    if (*around == TRACE_NONE)
        return 0;
    time = thread_time_of(span_of(model, *around));
    return thread_time_parts(&time, *around == node ? model->nodes[node].self_ns / 1000 : 0, parts);
}
