/*
 * write(2) and pwrite(2) without their short counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_WRITE_ALL_H
#define BLKIN_WRITE_ALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Returns false with errno set; a part may have been written. */
static inline bool write_all(int fd, const void *bytes, size_t length)
{
    const char *next = bytes;

    while (length) {
        const ssize_t written = write(fd, next, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        next += written;
        length -= (size_t)written;
    }
    return true;
}

/* Same as write_all(), at an offset of the file. */
static inline bool write_all_at(int fd, const void *bytes, size_t length, uint64_t at)
{
    const char *next = bytes;

    while (length) {
        const ssize_t written = pwrite(fd, next, length, (off_t)at);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        next += written;
        at += (uint64_t)written;
        length -= (size_t)written;
    }
    return true;
}

#endif
