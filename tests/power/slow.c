/*
 * To be preloaded: each fsync() begins late, as on a slow disk. So a power cut falls far more often
 * between a report and its data on disk, if there is such a moment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_some(void)
{
    const char *most = getenv("SLOW_MS");
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now = (struct timespec){0, now.tv_nsec / 1000 % ((most ? atol(most) : 0) + 1) * 1000000};
    nanosleep(&now, NULL); /* the disk is slow */
}

int fsync(int fd)
{
    wait_some();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_some();
    return (int)syscall(SYS_fdatasync, fd);
}
