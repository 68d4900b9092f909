/*
 * Measures times of a few ns by batches of calls. Batches of different calls take turns.
 *
 * A turn measures each subject twice, each time in a group of batches. Both passes go over all
 * subjects in random order (the seed is BENCH_SEED in the environment). The shortest batch of a
 * group counts, because other load on the machine only makes batches longer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Hides from the compiler the values in memory, as the work between two real calls would. */
#define FORGET()      __asm__ volatile("" : : : "memory")
#define ESCAPE(thing) __asm__ volatile("" : : "r"(thing) : "memory")

struct subject {
    const char *name;
    void (*run)(unsigned calls); /* runs a batch; calls 0: prepares a group of batches */
};

struct batches {
    unsigned turns, group; /* batches in a group */
    unsigned calls;        /* in a batch */
    clockid_t clock;
};

extern const struct batches usual_batches;

/*
 * Prints a line for each run, "run TURN PASS NAME NS", in ns per call, as paired.py reads it.
 * Measures each subject once before, to warm up.
 */
void measure(const struct batches *batches, const struct subject *subjects, size_t count);

/* Keeps the calling thread on this CPU. Ends the program if that fails. */
void pin(int cpu);

uint64_t now_ns(void);

#endif
