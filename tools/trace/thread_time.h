/* The time of a span's thread, from the tags usage.* (doc/library.md).
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
    bool is_apart; /* waiting and blocked are separate; false: blocked_us has both */
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
 * Splits a node's self time into its known parts, the longest first. The rest is time without a
 * thread. A step or another child has no usage tags: then *around is the enclosing span of the same
 * service, and the parts are of its whole time. Returns the number of parts; 0: unknown.
 */
size_t thread_time_tell(const struct trace_model *model, uint32_t node, uint32_t *around,
                        struct thread_time_part parts[THREAD_TIME_PARTS]);

#endif
