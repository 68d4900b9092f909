/*
 * What is known of a run besides its counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "run_info.h"

#include <time.h>

int64_t wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
