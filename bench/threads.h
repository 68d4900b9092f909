/*
 * Measures how two threads on two CPUs slow down each other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

/* Prints runs of "together" and "alone": calls per second of two threads at once, and of each
 * thread alone. */
void measure_threads(void (*run)(unsigned calls));

#endif
