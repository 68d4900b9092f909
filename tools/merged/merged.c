/* The sums of all workers' counters and statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include <stdlib.h>
#include <string.h>

/* Names for rows and edges, if all differ, and a share for names without a row. */
#define MERGED_NAMES_MAX   32768
#define MERGED_NAMES_BYTES (8U << 20)

struct merged *merged_new(void)
{
    struct merged *merged = calloc(1, sizeof(*merged));

    if (!merged)
        return NULL;
    merged->names = names_new(MERGED_NAMES_MAX, MERGED_NAMES_BYTES);
    merged->statistics = merged->names ? statistics_new(merged->names) : NULL;
    merged->workers = calloc(WORKERS_MAX, sizeof(*merged->workers));
    if (merged->statistics && merged->workers)
        return merged;
    merged_free(merged);
    return NULL;
}

void merged_free(struct merged *merged)
{
    if (!merged)
        return;
    statistics_free(merged->statistics);
    names_free(merged->names);
    free(merged->workers);
    free(merged);
}

/* ---- workers --------------------------------------------------------------------------------- */

bool worker_is_there(const struct merged_worker *worker, int64_t now_ns)
{
    return now_ns - worker->heard_ns < WORKER_AWAY_NS;
}

static void forget(struct merged *merged, size_t i)
{
    work_counts_add(&merged->forgotten, &merged->workers[i].counts);
    merged->workers[i] = merged->workers[--merged->worker_count];
}

/* Forgets workers that are long silent. If there is still no room, forgets the worker that has been
 * silent for longest. */
static void worker_make_room(struct merged *merged, int64_t now_ns)
{
    size_t oldest = 0;

    for (size_t i = merged->worker_count; i-- > 0;) {
        if (now_ns - merged->workers[i].heard_ns > WORKER_FORGET_NS)
            forget(merged, i);
    }
    if (merged->worker_count < WORKERS_MAX)
        return;
    for (size_t i = 1; i < merged->worker_count; i++) {
        if (merged->workers[i].heard_ns < merged->workers[oldest].heard_ns)
            oldest = i;
    }
    forget(merged, oldest);
}

static struct merged_worker *find_worker(struct merged *merged, const char *instance,
                                         int64_t now_ns)
{
    struct merged_worker *worker;

    for (size_t i = 0; i < merged->worker_count; i++) {
        if (strcmp(merged->workers[i].instance, instance) == 0)
            return &merged->workers[i];
    }
    worker_make_room(merged, now_ns);
    worker = &merged->workers[merged->worker_count++];
    *worker = (struct merged_worker){.heard_ns = 0};
    (void)snprintf(worker->instance, sizeof(worker->instance), "%s", instance);
    return worker;
}

/* ---- messages -------------------------------------------------------------------------------- */

void merged_widen(struct merged *merged, int64_t from_ns, int64_t to_ns)
{
    if (merged->from_ns == 0 || from_ns < merged->from_ns)
        merged->from_ns = from_ns;
    if (to_ns > merged->to_ns)
        merged->to_ns = to_ns;
}

void merged_add_worker(struct merged *merged, const char *instance,
                       const struct work_counts *counts, int64_t heard_ns)
{
    char name[WORKER_NAME_MAX];
    struct merged_worker *worker;
    struct work_counts sum = *counts;

    /* replaces unsafe bytes, as the name appears on terminals, in pages and in JSON */
    (void)snprintf(name, sizeof(name), "%s", instance);
    for (char *c = name; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    worker = find_worker(merged, name, heard_ns);

    if (heard_ns >= worker->heard_ns) {
        worker->heard_ns = heard_ns;
        work_counts_add(&worker->counts, counts);
        return;
    }
    work_counts_add(&sum, &worker->counts); /* keeps the gauges of the newer account */
    worker->counts = sum;
}

/* ---- counters -------------------------------------------------------------------------------- */

#define COUNTER(name, help)       {#name, WORK_COUNTER, offsetof(struct work_counts, name), help},
#define GAUGE(name, help)         {#name, WORK_GAUGE, offsetof(struct work_counts, name), help},
#define RATIO(name, member, help) {name, WORK_RATIO, offsetof(struct work_counts, member), help},

const struct work_counter work_counters[] = {
#include "tools/merged/counts.def"
};
#undef COUNTER
#undef GAUGE
#undef RATIO

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

/* Adds or subtracts counters; the gauges are those of `now`. */
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
