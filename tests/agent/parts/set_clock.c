/*
 * A preloaded library: CLOCK_REALTIME of the program is ahead by the int64_t of ns in the file
 * $SET_CLOCK.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_ns;

__attribute__((constructor)) static void set_clock(void)
{
    const char *path = getenv("SET_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof(*ahead_ns), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at != MAP_FAILED)
        ahead_ns = at;
    if (fd >= 0)
        (void)close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, time);

    if (status == 0 && clock == CLOCK_REALTIME && ahead_ns) {
        const int64_t ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + *ahead_ns;

        *time = (struct timespec){ns / 1000000000, ns % 1000000000};
    }
    return status;
}
