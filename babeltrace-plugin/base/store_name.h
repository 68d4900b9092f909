/*
 * Makes a file name durable. fsync(2) of the file does not do that.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_STORE_NAME_H
#define BLKIN_BASE_STORE_NAME_H

#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls fsync(2) on the file's folder. Returns false with errno set. */
static inline bool store_name(const char *path)
{
    char *copy = strdup(path);
    const int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool is_stored = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    return is_stored;
}

#endif
