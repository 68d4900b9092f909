/*
 * The account of a worker: each span that was read has one outcome, or is open.
 *
 *     in + taken over = counted + late + over + invalid + handed over + open, always
 *
 * It is the same over all workers: what one has handed over, or had open when it was killed, others
 * have taken over, and is in `in` once. So is what is in the deltas (merged.h): they are committed
 * together with what was read.
 *
 * One table has all counters: the worker's page, its last line and the deltas are made from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_COUNTS_H
#define BLKIN_TOOLS_WORK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct work_counts {
#define COUNTER(name, help)       uint64_t name;
#define GAUGE(name, help)         uint64_t name;
#define RATIO(name, member, help) double member;
#include "tools/merged/counts.def"
#undef COUNTER
#undef GAUGE
#undef RATIO
};

enum work_counter_kind {
    WORK_COUNTER, /* never falls; in deltas: what it has grown by */
    WORK_GAUGE,   /* as it is now */
    WORK_RATIO    /* the same, a double */
};

struct work_counter {
    const char *name; /* Prometheus: blkin_work_NAME, of a counter _total */
    enum work_counter_kind kind;
    size_t offset; /* in struct work_counts */
    const char *help;
};

extern const struct work_counter work_counters[];
extern const size_t work_counters_count;

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts);
double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts);

/* Counters are added up, gauges are the later ones. */
void work_counts_add(struct work_counts *counts, const struct work_counts *delta);

/* What counters have grown by since `before`; gauges as they are now. */
struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before);

#endif
