/*
 * The table of a worker's counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "counts.h"

#include <string.h>

#define COUNTER(name, help)       {#name, WORK_COUNTER, offsetof(struct work_counts, name), help},
#define GAUGE(name, help)         {#name, WORK_GAUGE, offsetof(struct work_counts, name), help},
#define RATIO(name, member, help) {name, WORK_RATIO, offsetof(struct work_counts, member), help},

const struct work_counter work_counters[] = {
#include "tools/merged/counts.def"
};

const size_t work_counters_count = sizeof(work_counters) / sizeof(work_counters[0]);

static const void *place(const struct work_counter *counter, const struct work_counts *counts)
{
    return (const char *)counts + counter->offset;
}

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts)
{
    uint64_t value;

    memcpy(&value, place(counter, counts), sizeof(value));
    return value;
}

double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts)
{
    double value;

    memcpy(&value, place(counter, counts), sizeof(value));
    return value;
}

/* now + or - before of counters; gauges are those of now. */
static struct work_counts combine(const struct work_counts *now, const struct work_counts *other,
                                  bool subtract)
{
    struct work_counts result = *now;

    for (size_t i = 0; i < work_counters_count; i++) {
        const struct work_counter *counter = &work_counters[i];
        const uint64_t value = work_counter_value(counter, other);
        uint64_t sum = work_counter_value(counter, now);

        if (counter->kind != WORK_COUNTER)
            continue;
        sum = subtract ? sum - value : sum + value;
        memcpy((char *)&result + counter->offset, &sum, sizeof(sum));
    }
    return result;
}

void work_counts_add(struct work_counts *counts, const struct work_counts *delta)
{
    *counts = combine(delta, counts, false);
}

struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before)
{
    return combine(now, before, true);
}
