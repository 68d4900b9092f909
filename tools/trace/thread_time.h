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

#define THREAD_TIME_PARTS 4

struct thread_time_part {
    const char *what;
    int64_t us;
};

/*
 * What a node's time was: the times that are known, the longest first. What is more of its self
 * time is when no thread worked for it. A step, or another child without usage, has none: *around
 * is the span around it then, of the same service, whose whole time it is. Returns how many parts
 * there are; 0: no span tells.
 */
size_t thread_time_tell(const struct trace_model *model, uint32_t node, uint32_t *around,
                        struct thread_time_part parts[THREAD_TIME_PARTS]);

#endif
