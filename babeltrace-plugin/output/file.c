/*
 * The file transport: one JSON array on disk, complete after every batch.
 *
 * The closing bracket is written with each batch and overwritten by the next one, so that a file of
 * a running or a killed collector can be loaded too. A pipe or a terminal gets it at the end only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char tail[] = "\n]\n";

struct file_transport {
    struct transport base;
    int fd;
    bool seekable;
    off_t length; /* of what stays: all but the tail */
    char path[];
};

static bool write_all(struct file_transport *file, const char *data, size_t length,
                      struct error *error)
{
    while (length) {
        ssize_t written = file->seekable ? pwrite(file->fd, data, length, file->length)
                                         : write(file->fd, data, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            error_set(error, "file:%s: cannot write: %s", file->path, strerror(errno));
            return false;
        }
        data += written;
        length -= (size_t)written;
        file->length += written;
    }
    return true;
}

/* The array is whole again without the piece that could not be written. */
static bool write_tail(struct file_transport *file, struct error *error)
{
    const off_t length = file->length;
    const bool written = write_all(file, tail, sizeof(tail) - 1, error);

    file->length = length;
    return written;
}

/* A full disk: give back the room of the broken piece, which leaves some for the tail. */
static void take_back(struct file_transport *file, off_t length)
{
    struct error second;

    if (file->seekable && ftruncate(file->fd, length) == 0) {
        file->length = length;
        (void)write_tail(file, &second);
    }
}

static void file_send(struct transport *transport, const struct payload *payload,
                      struct reply *reply)
{
    struct file_transport *file = (struct file_transport *)transport;
    const off_t before = file->length;
    const bool first = before == 1;

    *reply = (struct reply){.delivery = DELIVERY_ACCEPTED};
    if (write_all(file, first ? "\n" : ",\n", first ? 1 : 2, &reply->error) &&
        write_all(file, payload->spans.data, payload->spans.length, &reply->error) &&
        (!file->seekable || write_tail(file, &reply->error)))
        return;
    take_back(file, before);
    reply->delivery = DELIVERY_REFUSED;
}

/* A local disk does not hang; a network's may, and then so do we. */
static void file_cancel(struct transport *transport)
{
    (void)transport;
}

static bool file_close(struct transport *transport, struct error *error)
{
    struct file_transport *file = (struct file_transport *)transport;
    bool complete = file->seekable || write_tail(file, error);

    if (close(file->fd) < 0 && complete) {
        error_set(error, "file:%s: cannot close: %s", file->path, strerror(errno));
        complete = false;
    }
    free(file);
    return complete;
}

/* A file with content may be last night's only trace: never overwritten. */
static bool refuse_content(const char *path, const struct stat *status, struct error *error)
{
    if (!S_ISREG(status->st_mode) || status->st_size == 0)
        return false;
    error_set(error, "file:%s: exists and is not empty: remove it, or choose another name", path);
    return true;
}

static bool start(struct file_transport *file, struct error *error)
{
    struct stat status;

    file->fd = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file->fd < 0 || fstat(file->fd, &status) < 0) {
        error_set(error, "file:%s: cannot open for writing: %s", file->path, strerror(errno));
        return false;
    }
    if (refuse_content(file->path, &status, error))
        return false;
    file->seekable = S_ISREG(status.st_mode);
    return write_all(file, "[", 1, error) && (!file->seekable || write_tail(file, error));
}

struct transport *file_transport_open(const char *path, struct error *error)
{
    struct file_transport *file;

    if (path[0] == '\0') {
        error_set(error, "endpoint \"file:\": expected a path after \"file:\"");
        return NULL;
    }
    file = calloc(1, sizeof(*file) + strlen(path) + 1);
    if (!file) {
        error_set(error, "file:%s: out of memory", path);
        return NULL;
    }
    strcpy(file->path, path);
    file->base = (struct transport){NULL, file_send, file_cancel, file_close};
    if (!start(file, error)) {
        if (file->fd >= 0)
            close(file->fd);
        free(file);
        return NULL;
    }
    return &file->base;
}
