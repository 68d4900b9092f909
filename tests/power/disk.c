/*
 * To be preloaded: a disk that is slow, or that hangs.
 *
 * With SLOW_MS each fsync() begins late. So if a program reports data before they are on disk, a
 * power cut falls into that gap far more often. While the file HANG_WHILE exists, two kinds of
 * calls do not return: fsync() of a file with HANG_NAME in its path, and a call that gives a file
 * such a name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void hang(const char *path)
{
    const struct timespec some = {0, 10000000};
    const char *name = getenv("HANG_NAME"), *as_long_as = getenv("HANG_WHILE");

    while (name && as_long_as && strstr(path, name) && access(as_long_as, F_OK) == 0)
        nanosleep(&some, NULL); /* between two looks */
}

int fsync(int fd)
{
    char link[64], path[4096] = "";

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    (void)!readlink(link, path, sizeof(path) - 1);
    wait_some();
    hang(path);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_some();
    return (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
    hang(to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
    hang(to);
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
