/*
 * How long a thread has waited for a CPU: the second number of its /proc/thread-self/schedstat,
 * which it opens at the first reading and keeps open until it ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RUN_DELAY_H
#define BLKIN_RUN_DELAY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the calling thread, in ns. Returns false where it cannot be had: no /proc, no such file in
 * this kernel, no descriptor left, too many threads that have one. Async-signal-safe from
 * blkin_run_delay_thread_begin() on; keeps errno.
 */
bool blkin_run_delay(uint64_t *ns);

void blkin_run_delay_thread_begin(void);

/* In a child of fork(2), while it has one thread: closes what is of the parent's threads. */
void blkin_run_delay_after_fork(void);

#endif
