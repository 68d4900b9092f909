/*
 * Measures how two threads on two CPUs slow down each other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

/* Prints runs of "together" and "alone", in batches per second: the sum of two threads that work at
 * once, and the sum of the same threads, one after the other. */
void measure_threads(void (*run)(unsigned calls));

#endif
