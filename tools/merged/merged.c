/*
 * What all workers have counted, added up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include <stdlib.h>
#include <string.h>

/* Of rows and edges, when all of their names are different; and a share for those that never come
 * into one. */
#define NAMES_MAX   32768
#define NAMES_BYTES (8U << 20)

struct merged *merged_new(void)
{
    struct merged *merged = calloc(1, sizeof(*merged));

    if (!merged)
        return NULL;
    merged->names = names_new(NAMES_MAX, NAMES_BYTES);
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

/* Those that have long been away; or, where there is no room, the one that has been for longest. */
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

/* It goes to terminals, pages and JSON, and is any bytes. */
static void clean_name(char name[WORKER_NAME_MAX], const char *instance)
{
    (void)snprintf(name, WORKER_NAME_MAX, "%s", instance);
    for (char *c = name; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
}

void merged_add_worker(struct merged *merged, const char *instance,
                       const struct work_counts *counts, int64_t heard_ns)
{
    char name[WORKER_NAME_MAX];
    struct merged_worker *worker;
    struct work_counts sum = *counts;

    clean_name(name, instance);
    worker = find_worker(merged, name, heard_ns);

    if (heard_ns >= worker->heard_ns) {
        worker->heard_ns = heard_ns;
        work_counts_add(&worker->counts, counts);
        return;
    }
    work_counts_add(&sum, &worker->counts); /* gauges stay those of later */
    worker->counts = sum;
}
