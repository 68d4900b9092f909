/*
 * Measuring a few ns: batches of calls, and groups of batches that alternate with those of others.
 *
 * A round times each subject, and then each again in reverse order (A-B-B-A), so that a drift of
 * the machine's speed is the same for all. What is reported is the least batch of all rounds, its
 * tenth percentile, and the spread: by how much the least batches of the halves of the rounds
 * differ.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define BATCH 2000 /* calls */

/* Keeps the compiler from knowing what is in memory, as the work between two real calls would. */
#define FORGET()      __asm__ volatile("" : : : "memory")
#define ESCAPE(thing) __asm__ volatile("" : : "r"(thing) : "memory")

struct subject {
    const char *name;
    void (*run)(unsigned calls); /* 0, before each group of its batches: to prepare */
};

/*
 * Prints a line for each: name, least and p10 in ns per call, spread as a share. From all of them
 * the least time of the subject named "empty" is taken off, if there is one.
 */
void measure(const struct subject *subjects, size_t count);

/* The calling thread stays on this CPU. Ends the program if it cannot. */
void pin(int cpu);

uint64_t now_ns(void);

#endif
