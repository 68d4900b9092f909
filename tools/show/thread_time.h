/*
 * How the thread that worked for a span spent its time, as the tags usage.* tell (doc/library.md).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_THREAD_TIME_H
#define BLKIN_TOOLS_THREAD_TIME_H

#include "../trace/load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread_time {
    bool is_known;
    bool is_apart; /* waiting from blocked: else blocked_us has both */
    int64_t on_cpu_us;
    int64_t waiting_us; /* for a CPU */
    int64_t blocked_us;
};

struct thread_time thread_time_of(const struct json_span *span);

#define THREAD_TIME_COLUMNS 21

/* Cells of so many columns in all: the heads, and those of a span. */
void thread_time_put_heads(void);
void thread_time_put(const struct thread_time *time);

/*
 * Writes the times that are known, the longest first. What is more of self_us, the span's own time,
 * is when no thread worked for it.
 */
void thread_time_explain(const struct thread_time *time, int64_t self_us);

#endif
