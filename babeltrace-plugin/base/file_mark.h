/*
 * A number that changes when a file changes. A reader that caches a file compares the mark now and
 * then.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_FILE_MARK_H
#define BLKIN_BASE_FILE_MARK_H

#include "hash.h"

#include <sys/stat.h>

/* Returns another number after the file was written or replaced; 0 if there is no file. */
static inline uint64_t file_mark(const char *path)
{
    struct stat status;
    uint64_t mark;

    if (stat(path, &status) < 0)
        return 0;
    mark = hash_number((uint64_t)status.st_dev, (uint64_t)status.st_ino);
    mark = hash_number(mark, (uint64_t)status.st_size);
    mark = hash_number(mark, (uint64_t)status.st_mtim.tv_sec);
    mark = hash_number(mark, (uint64_t)status.st_mtim.tv_nsec);
    mark = hash_number(mark, (uint64_t)status.st_ctim.tv_sec);
    return hash_number(mark, (uint64_t)status.st_ctim.tv_nsec) | 1;
}

#endif
