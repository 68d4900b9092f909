/*
 * pread(2) without its short counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_READ_AT_H
#define BLKIN_READ_AT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Returns the number of bytes read: fewer than room at the end of the file or after an error. */
static inline size_t read_at(int fd, void *bytes, size_t room, uint64_t at)
{
    size_t done = 0;

    while (done < room) {
        const ssize_t got = pread(fd, (char *)bytes + done, room - done, (off_t)(at + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

#endif
