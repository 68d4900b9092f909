/*
 * How the thread that worked for a span spent its time, as the tags usage.* tell (doc/library.md).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_THREAD_TIME_H
#define BLKIN_TOOLS_THREAD_TIME_H

#include "babeltrace-plugin/model/model.h"
#include "load.h"

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

/*
 * The node that tells what the time of this one was: itself; of a step, or another child without
 * usage, the span around, of the same service. TRACE_NONE: none does.
 */
uint32_t thread_time_around(const struct trace_model *model, uint32_t node);

#define THREAD_TIME_PARTS 4

struct thread_time_part {
    const char *what;
    int64_t us;
};

/*
 * The times that are known, the longest first, and how many they are: one at least. What is more of
 * self_us, the span's own time, is when no thread worked for it.
 */
size_t thread_time_parts(const struct thread_time *time, int64_t self_us,
                         struct thread_time_part parts[THREAD_TIME_PARTS]);

#endif
