/*
 * Cold caches, as in a daemon that does much else for each request, and times by the processor's
 * counter. For x86-64.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_COLD_H
#define BENCH_COLD_H

#include "batch.h"

#include <x86intrin.h>

#define COLD_LINE 64 /* bytes */

static inline uint64_t ticks(void)
{
    unsigned cpu;
    uint64_t now;

    FORGET();
    now = __rdtscp(&cpu);
    FORGET();
    return now;
}

/* What two readings of the counter take. */
double ticks_least(void);

/* The median: the mean of the middle fifth, because some processors count time in steps of 10 ns.
 * Sorts them. */
double ticks_median(double *of, unsigned count);

/* Memory that is there. Ends the program if there is none. */
void *cold_map(size_t size, int protection);

/* From here on cold() reads and writes so much data, and runs 128 KiB of code; with 0 KiB it does
 * nothing. */
void cold_prepare(uint32_t kib);
void cold(void);

#endif
