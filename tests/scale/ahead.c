/*
 * A library that is preloaded into a worker, and sets the worker's clock forward by CLOCK_AHEAD_MS.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    static int64_t ahead_ms;
    int status;

    if (!real) {
        const char *value = getenv("CLOCK_AHEAD_MS");

        ahead_ms = value ? strtoll(value, NULL, 10) : 0;
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    status = real(clock, time);
    if (status == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += ahead_ms / 1000;
    return status;
}
