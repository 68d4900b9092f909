/*
 * Files: pread(2), write(2) and pwrite(2) without short counts, durable names, fingerprints. The id
 * of the boot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_FILE_H
#define BLKIN_BASE_FILE_H

#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void guard_close_file(FILE **file)
{
    const int cause = errno;

    if (*file)
        (void)fclose(*file);
    errno = cause;
}

static inline void guard_close(const int *fd)
{
    const int cause = errno;

    if (*fd >= 0)
        (void)close(*fd);
    errno = cause;
}

static inline void guard_free(char **text)
{
    free(*text);
}

/* Before a variable of the type FILE *, int or char *: closes the file (NULL: none) or the
 * descriptor (-1: none), or frees the text, on every path out of the block. errno stays. */
#define GUARD_FILE __attribute__((cleanup(guard_close_file)))
#define GUARD_FD   __attribute__((cleanup(guard_close)))
#define GUARD_TEXT __attribute__((cleanup(guard_free)))

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

#define BOOT_ID_MAX 64

/* Reads the id of this boot of the host; "": it cannot be read. */
static inline void boot_id_read(char id[BOOT_ID_MAX])
{
    GUARD_FD const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    id[fd < 0 ? 0 : read_at(fd, id, BOOT_ID_MAX - 1, 0)] = '\0';
    id[strcspn(id, "\n")] = '\0';
}

#define FILE_OFFSET_CURRENT UINT64_MAX /* write_all_at() uses write(2) in place of pwrite(2) */

/* Returns false with errno set; a part may have been written. */
static inline bool write_all_at(int fd, const void *bytes, size_t length, uint64_t at)
{
    for (size_t done = 0; done < length;) {
        const char *next = (const char *)bytes + done;
        const ssize_t written = at == FILE_OFFSET_CURRENT
                                    ? write(fd, next, length - done)
                                    : pwrite(fd, next, length - done, (off_t)(at + done));

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        done += (size_t)written;
    }
    return true;
}

static inline bool write_all(int fd, const void *bytes, size_t length)
{
    return write_all_at(fd, bytes, length, FILE_OFFSET_CURRENT);
}

/* Makes the name of a file durable: fsync(2) of the file does not do that. Returns false with errno
 * set. */
static inline bool file_store_name(const char *path)
{
    char *copy = strdup(path);
    const int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool is_stored = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    return is_stored;
}

/* Returns a number that changes when the file is written or replaced; 0: no file. A reader that
 * caches a file compares the fingerprints. */
static inline uint64_t file_fingerprint(const char *path)
{
    struct stat status;
    uint64_t print;

    if (stat(path, &status) < 0)
        return 0;
    print = hash_number((uint64_t)status.st_dev, (uint64_t)status.st_ino);
    print = hash_number(print, (uint64_t)status.st_size);
    print = hash_number(print, (uint64_t)status.st_mtim.tv_sec);
    print = hash_number(print, (uint64_t)status.st_mtim.tv_nsec);
    print = hash_number(print, (uint64_t)status.st_ctim.tv_sec);
    return hash_number(print, (uint64_t)status.st_ctim.tv_nsec) | 1;
}

#endif
