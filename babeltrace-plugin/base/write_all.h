/*
 * write(2) without its short counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_WRITE_ALL_H
#define BLKIN_WRITE_ALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Returns false with errno set: then a part may be written. */
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

#endif
