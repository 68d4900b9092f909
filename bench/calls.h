/*
 * Each inline call of the span API alone, on a span that is not recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

/* Makes `calls` calls of this name. Returns 0 if there is no such call. */
int calls_run(const char *name, unsigned calls);

void calls_print(void);

#endif
