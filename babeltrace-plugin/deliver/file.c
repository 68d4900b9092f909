/*
 * The file transport: the file is one large batch, complete after each send().
 *
 * Each send() writes the end of the file, such as JSON's closing bracket, and the next send()
 * overwrites the end. So programs can load the file while the sink runs, or after a kill. A pipe or
 * a terminal gets the end once, from finish().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/encode/encoder.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define READER_POLL_MS 20 /* poll(2) does not report the reader of a FIFO */

struct file_transport {
    struct transport base;
    const struct protocol *protocol;
    int fd;        /* -1: a FIFO without a reader yet */
    int cancel_fd; /* readable: end all waits */
    bool is_seekable;
    off_t length;   /* without the end */
    bool is_begun;  /* the text before the first batch is written */
    bool has_spans; /* the next batch begins with protocol->file_joint */
    char path[];
};

/* Returns false after cancel(). */
static bool file_wait_for(struct file_transport *file, int fd, int timeout_ms)
{
    struct pollfd fds[2] = {{file->cancel_fd, POLLIN, 0}, {fd, POLLOUT, 0}};

    while (poll(fds, 2, timeout_ms) < 0 && errno == EINTR)
        ;
    return !fds[0].revents;
}

/* The reader of a pipe may pause for any time: only cancel() ends the wait. */
static bool file_write_all(struct file_transport *file, struct text text, struct error *error)
{
    while (text.length) {
        ssize_t written = file->is_seekable ? pwrite(file->fd, text.data, text.length, file->length)
                                            : write(file->fd, text.data, text.length);

        if (written < 0 &&
            (errno == EINTR || (errno == EAGAIN && file_wait_for(file, file->fd, -1))))
            continue;
        if (written < 0) {
            const int cause = errno;

            error_set(error, "file:%s: cannot write: %s", file->path,
                      cause == EAGAIN ? "its reader stands still" : strerror(cause));
            errno = cause; /* callers test errno */
            return false;
        }
        text.data += written;
        text.length -= (size_t)written;
        file->length += written;
    }
    return true;
}

/* Writes the end of the file, which the next batch overwrites. */
static bool file_write_tail(struct file_transport *file, struct error *error)
{
    const off_t length = file->length;
    const bool written = file_write_all(file, file->protocol->file_close, error);

    file->length = length;
    return written;
}

/* After a failed write, such as on a full disk: removes what was written of the batch, which makes
 * room for the tail. */
static void file_take_back(struct file_transport *file, off_t length)
{
    struct error second;

    if (!file->is_seekable)
        return;
    file->length = length;
    if (ftruncate(file->fd, length) == 0)
        (void)file_write_tail(file, &second);
}

static bool file_begin_output(struct file_transport *file, struct error *error)
{
    file->is_begun = file->is_begun || file_write_all(file, file->protocol->file_open, error);
    return file->is_begun;
}

static bool file_store(const struct file_transport *file, struct error *error)
{
    return fsync(file->fd) == 0 ||
           error_set(error, "file:%s: cannot be stored: %s", file->path, strerror(errno));
}

static void file_send(struct transport *transport, const struct payload *payload,
                      struct transport_reply *reply)
{
    struct file_transport *file = (struct file_transport *)transport;
    const off_t before = file->length;
    const struct text joint = file->has_spans ? file->protocol->file_joint : (struct text){NULL, 0};
    bool retry_may_help;

    *reply = (struct transport_reply){.outcome = OUTCOME_ACCEPTED};
    if (file_begin_output(file, &reply->error) && file_write_all(file, joint, &reply->error) &&
        file_write_all(file, payload->spans, &reply->error) &&
        (!file->is_seekable || file_write_tail(file, &reply->error))) {
        file->has_spans = true;
        return;
    }
    /* a full disk may become free again; EAGAIN: cancel() has ended the wait for a reader */
    retry_may_help = file->is_seekable ? errno == ENOSPC || errno == EDQUOT : errno == EAGAIN;
    reply->outcome = retry_may_help ? OUTCOME_AGAIN : OUTCOME_REFUSED;
    file_take_back(file, before);
}

static bool file_is_fifo(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Returns true if the file is open, or cannot be opened (with errno set); false: a FIFO without a
 * reader. */
static bool file_try_to_open(struct file_transport *file)
{
    file->fd = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    return file->fd >= 0 || errno != ENXIO || !file_is_fifo(file->path);
}

/* Waits for the reader of a FIFO. */
static void file_probe(struct transport *transport, struct transport_reply *reply)
{
    struct file_transport *file = (struct file_transport *)transport;

    *reply = (struct transport_reply){.outcome = OUTCOME_ACCEPTED};
    while (file->fd < 0 && !file_try_to_open(file)) {
        if (!file_wait_for(file, -1, READER_POLL_MS)) {
            error_set(&reply->error, "file:%s: nobody reads the FIFO", file->path);
            reply->outcome = OUTCOME_AGAIN;
            return;
        }
    }
    if (file->fd < 0) {
        error_set(&reply->error, "file:%s: cannot open for writing: %s", file->path,
                  strerror(errno));
        reply->outcome = OUTCOME_REFUSED;
    }
}

/* A write to a hanging network file system cannot be ended. */
static void file_cancel(struct transport *transport)
{
    struct file_transport *file = (struct file_transport *)transport;

    (void)eventfd_write(file->cancel_fd, 1);
}

static bool file_finish(struct transport *transport, struct error *error)
{
    struct file_transport *file = (struct file_transport *)transport;
    bool complete;

    if (file->fd < 0)
        return true;
    complete = file->is_seekable ? file_store(file, error)
                                 : file_begin_output(file, error) && file_write_tail(file, error);
    if (close(file->fd) < 0 && complete) {
        error_set(error, "file:%s: cannot close: %s", file->path, strerror(errno));
        complete = false;
    }
    file->fd = -1;
    return complete;
}

static void file_free(struct transport *transport)
{
    struct file_transport *file = (struct file_transport *)transport;

    if (file->fd >= 0)
        close(file->fd);
    if (file->cancel_fd >= 0)
        close(file->cancel_fd);
    free(file);
}

static bool file_set_open_error(const char *path, int cause, struct error *error)
{
    char target[PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof(target) - 1);

    if (length < 0)
        return error_set(error, "file:%s: cannot open for writing: %s", path, strerror(cause));
    target[length] = '\0';
    return error_set(error,
                     "file:%s: is a symbolic link to %s, which cannot be opened for writing: %s",
                     path, target, strerror(cause));
}

/* Finds the end of a complete file of this protocol. Returns false for other content. */
static bool file_continue(struct file_transport *file, off_t size)
{
    const struct text head = file->protocol->file_open, tail = file->protocol->file_close;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    char begin[16], end[16];
    bool is_ours;

    file->length = size - (off_t)tail.length;
    is_ours = fd >= 0 && head.length <= sizeof(begin) && tail.length <= sizeof(end) &&
              file->length >= (off_t)head.length &&
              pread(fd, begin, head.length, 0) == (ssize_t)head.length &&
              pread(fd, end, tail.length, file->length) == (ssize_t)tail.length &&
              text_equal((struct text){begin, head.length}, head) &&
              text_equal((struct text){end, tail.length}, tail);
    if (fd >= 0)
        (void)close(fd);
    file->is_begun = true;
    file->has_spans = file->length > (off_t)head.length;
    return is_ours;
}

static bool file_start(struct file_transport *file, bool continues, struct error *error)
{
    struct stat status;

    file->cancel_fd = eventfd(0, EFD_CLOEXEC);
    if (file->cancel_fd < 0)
        return error_set(error, "file:%s: %s", file->path, strerror(errno));
    if (!file_try_to_open(file))
        return true; /* file_probe() waits, and an interruption ends that wait */
    if (file->fd < 0 || fstat(file->fd, &status) < 0)
        return file_set_open_error(file->path, errno, error);
    file->is_seekable = S_ISREG(status.st_mode);
    /* the file may be last night's only trace, so the sink does not overwrite content */
    if (file->is_seekable && status.st_size > 0)
        return (continues && file_continue(file, status.st_size)) ||
               error_set(
                   error,
                   "file:%s: exists and is not empty, and is not overwritten: choose another name",
                   file->path);
    /* only the sender's thread, which blocks SIGPIPE, writes to a pipe */
    if (!file->is_seekable)
        return true;
    return file_begin_output(file, error) && file_write_tail(file, error);
}

struct transport *file_transport_open(const struct transport_options *options, const char *path,
                                      struct error *error)
{
    struct file_transport *file;

    if (path[0] == '\0')
        return error_null(error, "endpoint \"file:\": expected a path after \"file:\"");
    file = calloc(1, sizeof(*file) + strlen(path) + 1);
    if (!file)
        return error_null(error, "file:%s: out of memory", path);
    strcpy(file->path, path);
    file->protocol = options->protocol;
    file->fd = file->cancel_fd = -1;
    file->base = (struct transport){.probe = file_probe,
                                    .send = file_send,
                                    .cancel = file_cancel,
                                    .finish = file_finish,
                                    .free = file_free};
    if (!file_start(file, options->continues, error)) {
        file_free(&file->base);
        return NULL;
    }
    return &file->base;
}
