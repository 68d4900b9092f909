/*
 * What an object store of the example storage stack keeps on disk: objects, and a journal.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "objects.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_SIZE (UINT64_C(64) << 20)

struct journal_entry {
    uint64_t object; /* all big-endian */
    uint64_t offset;
    uint64_t length; /* of the data that follows */
};

int objects_open(struct objects *objects, const char *path)
{
    int error = 0;

    objects->journal_end = 0;
    pthread_mutex_init(&objects->lock, NULL);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        error = errno;
    objects->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (objects->directory >= 0)
        objects->journal =
            openat(objects->directory, "journal", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (error == 0 && (objects->directory < 0 || objects->journal < 0))
        error = errno;
    if (error != 0)
        fprintf(stderr, "%s: cannot use the folder '%s': %s\n", program_invocation_short_name, path,
                strerror(error));
    return error;
}

static int write_all(int file, const void *data, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t done = pwrite(file, data, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data = (const char *)data + done;
        size -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int objects_journal(struct objects *objects, uint64_t object, uint64_t offset, const void *data,
                    size_t length)
{
    const struct journal_entry entry = {htobe64(object), htobe64(offset), htobe64(length)};
    const uint64_t size = sizeof(entry) + length;
    uint64_t at;
    int error;

    pthread_mutex_lock(&objects->lock);
    at = objects->journal_end + size <= JOURNAL_SIZE ? objects->journal_end : 0;
    objects->journal_end = at + size;
    pthread_mutex_unlock(&objects->lock);

    error = write_all(objects->journal, &entry, sizeof(entry), at);
    if (error == 0)
        error = write_all(objects->journal, data, length, at + sizeof(entry));
    if (error == 0 && fdatasync(objects->journal) < 0)
        error = errno;
    return error;
}

static int open_object(const struct objects *objects, uint64_t object, int flags)
{
    char name[32];

    snprintf(name, sizeof(name), "object.%016" PRIx64, object);
    return openat(objects->directory, name, flags | O_CLOEXEC, 0644);
}

int objects_apply(struct objects *objects, uint64_t object, uint64_t offset, const void *data,
                  size_t length)
{
    const int file = open_object(objects, object, O_WRONLY | O_CREAT);
    int error;

    if (file < 0)
        return errno;
    error = write_all(file, data, length, offset);
    close(file);
    return error;
}

static int read_all(int file, char *data, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t done = pread(file, data, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (done == 0) {
            memset(data, 0, size);
            return 0;
        }
        data += done;
        size -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int objects_read(struct objects *objects, uint64_t object, uint64_t offset, void *data,
                 size_t length)
{
    const int file = open_object(objects, object, O_RDONLY);
    int error;

    if (file < 0)
        return errno;
    error = read_all(file, data, length, offset);
    close(file);
    return error;
}
