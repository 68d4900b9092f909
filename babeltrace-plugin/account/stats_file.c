/* SPDX-License-Identifier: BSD-2-Clause */
#include "stats_file.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The beginning of every such file, to recognise the file. */
static const char beginning[] = "{\n  \"sink\": \"sink.blkin.zipkin\"";

static bool stats_file_error(struct error *error, const char *path, const char *what)
{
    return error_set(error, "stats-file \"%s\": %s: %s", path, what, strerror(errno));
}

/* ---- the text -------------------------------------------------------------------------------- */

json_t *counts_json(const struct counts *counts)
{
    json_t *object = json_object();

    for (size_t i = 0; i < counters_count; i++) {
        json_t *value = json_integer((json_int_t)counter_value(&counters[i], counts));

        if (json_object_set_new(object, counters[i].name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static int print_piece(const char *text, size_t length, void *context)
{
    print_text(context, text, length);
    return 0;
}

char *stats_text(const struct counts *counts, const struct run_info *run)
{
    const int64_t trace_ns = counts->input.trace_time_ns;
    /* "o" with NULL, out of memory, makes json_pack() return NULL */
    json_t *json = json_pack(
        "{ss, ss, sI, so, so, so, so, s{sI, sI, sI}, ss, ss, so}", "sink", "sink.blkin.zipkin",
        "version", BLKIN_RELEASE, "pid", (json_int_t)getpid(), "started", json_time(run->start_ns),
        "written", json_time(run->now_ns), "events_as_of", json_time(run->events_ns), "trace_time",
        json_time(trace_ns), "settled", "time_ns", (json_int_t)counts->input.settled.at.time_ns,
        "events", (json_int_t)counts->input.settled.at.events, "sent",
        (json_int_t)counts->input.settled.sent, "state", run->has_ended ? "ended" : "running",
        "endpoint", run->endpoint, "counters", counts_json(counts));
    struct printer printer = {.has_failed = !json};

    if (json && json_dump_callback(json, print_piece, &printer, JSON_INDENT(2)) != 0)
        printer.has_failed = true;
    json_decref(json);
    return print_end(&printer);
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool check_content(const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char begin[sizeof(beginning) - 1];
    bool is_ours;

    if (fd < 0)
        return stats_file_error(error, path, "exists and cannot be read");
    is_ours = read(fd, begin, sizeof(begin)) == (ssize_t)sizeof(begin) &&
              memcmp(begin, beginning, sizeof(begin)) == 0;
    close(fd);
    return is_ours ||
           error_set(
               error,
               "stats-file \"%s\": exists and is no statistics file, and is not replaced: choose "
               "another name",
               path);
}

static bool check(const char *path, struct error *error)
{
    struct stat status;

    if (path[0] == '\0')
        return error_set(error, "stats-file: expected the path of a file, got an empty text");
    if (lstat(path, &status) < 0)
        return true; /* stats_file_write() reports any other problem */
    if (!S_ISREG(status.st_mode))
        return error_set(
            error, "stats-file \"%s\": expected a regular file, which the sink replaces", path);
    return status.st_size == 0 || check_content(path, error);
}

static bool refuse_taken(const char *path, struct error *error)
{
    return error_set(
        error, "stats-file \"%s\": another sink writes it: give each sink a file of its own", path);
}

static bool stats_file_is_at(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* The lock is on a file that its owner may replace: the lock counts only if the file still has the
 * name. */
static bool claim(struct stats_file *file, struct error *error)
{
    for (;;) {
        const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

        if (fd < 0)
            return true; /* stats_file_write() reports any other problem */
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            close(fd);
            return refuse_taken(file->path, error);
        }
        if (stats_file_is_at(fd, file->path)) {
            file->fd = fd;
            return true;
        }
        close(fd);
    }
}

bool stats_file_open(struct stats_file *file, const char *path, struct error *error)
{
    *file = (struct stats_file){strdup(path), -1};
    if (!file->path)
        error_set(error, "stats-file \"%s\": out of memory", path);
    else if (check(path, error) && claim(file, error))
        return true;
    stats_file_close(file);
    return false;
}

void stats_file_close(struct stats_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct stats_file){NULL, -1};
}

static int create_temporary(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(path, flags, 0666);

    /* a killed sink with the same process id has left the file */
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0666);
    return fd;
}

/* Closes a second descriptor, because some file systems report a failed write only at close(2). */
static bool is_stored(int fd)
{
    const int second = dup(fd);

    return second < 0 || close(second) == 0;
}

/* Returns the locked file, or -1 with errno set. */
static int fill(const char *path, const char *text)
{
    const int fd = create_temporary(path);
    int cause;

    if (fd < 0)
        return -1;
    (void)flock(fd, LOCK_EX | LOCK_NB);
    if (write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1) && is_stored(fd))
        return fd;
    cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

/* Renames the file. Without may_replace, a file that has the name `to` is not replaced. Returns
 * false with errno set. */
static bool move(const char *from, const char *to, bool may_replace)
{
    if (!may_replace) {
        if (link(from, to) == 0)
            return unlink(from) == 0;
        if (errno == EEXIST)
            return false;
        /* the file system has no links */
    }
    return rename(from, to) == 0;
}

static bool replace(struct stats_file *file, const char *temporary, const char *text,
                    struct error *error)
{
    const int fd = fill(temporary, text);

    if (fd >= 0 && move(temporary, file->path, file->fd >= 0)) {
        if (file->fd >= 0)
            close(file->fd);
        file->fd = fd;
        return true;
    }
    if (fd >= 0 && errno == EEXIST)
        (void)refuse_taken(file->path, error);
    else
        (void)stats_file_error(error, file->path, "cannot write");
    if (fd >= 0)
        close(fd);
    (void)unlink(temporary);
    return false;
}

bool stats_file_put(void *context, const char *text, struct error *error)
{
    struct stats_file *file = context;
    char own[sizeof(".4294967295.tmp")], *temporary;
    bool written;

    (void)snprintf(own, sizeof(own), ".%u.tmp", (unsigned)getpid());
    temporary = text ? string_joined(file->path, own) : NULL;
    if (!temporary)
        return error_set(error, "stats-file \"%s\": out of memory", file->path);
    written = replace(file, temporary, text, error);
    free(temporary);
    return written;
}

bool stats_file_write(struct stats_file *file, const struct counts *counts,
                      const struct run_info *run, struct error *error)
{
    char *text = stats_text(counts, run);
    const bool written = stats_file_put(file, text, error);

    free(text);
    return written;
}
