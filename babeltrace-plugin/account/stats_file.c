/*
 * The account as a JSON file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stats_file.h"

#include "printer.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How every such file begins: by this it is known. */
static const char mark[] = "{\n  \"sink\": \"sink.blkin.zipkin\"";

static void set_error(struct error *error, const char *path, const char *what)
{
    error_set(error, "stats-file \"%s\": %s: %s", path, what, strerror(errno));
}

/* ---- the text -----------------------------------------------------------------------------------
 */

static json_t *json_time(int64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / 1000000000);
    char date[32], text[48];
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
        return json_null();
    (void)snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(time_ns / 1000000 % 1000));
    return json_string(text);
}

static json_t *json_counters(const struct counts *counts)
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
    /* "o" of NULL, out of memory, makes the whole NULL */
    json_t *json = json_pack(
        "{ss, ss, sI, so, so, so, so, ss, ss, so}", "sink", "sink.blkin.zipkin", "version",
        BLKIN_VERSION, "pid", (json_int_t)getpid(), "started", json_time(run->start_ns), "written",
        json_time(run->now_ns), "events_as_of", json_time(run->events_ns), "trace_time",
        trace_ns ? json_time(trace_ns) : json_null(), "state", run->has_ended ? "ended" : "running",
        "endpoint", run->endpoint, "counters", json_counters(counts));
    struct printer printer = {.has_failed = !json};

    if (json && json_dump_callback(json, print_piece, &printer, JSON_INDENT(2)) != 0)
        printer.has_failed = true;
    json_decref(json);
    return print_end(&printer);
}

/* ---- the file -----------------------------------------------------------------------------------
 */

static bool begins_with_mark(int fd)
{
    char begin[sizeof(mark) - 1];

    return read(fd, begin, sizeof(begin)) == (ssize_t)sizeof(begin) &&
           memcmp(begin, mark, sizeof(begin)) == 0;
}

static bool check_content(const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_ours;

    if (fd < 0) {
        set_error(error, path, "exists and cannot be read");
        return false;
    }
    is_ours = begins_with_mark(fd);
    close(fd);
    if (!is_ours)
        error_set(error,
                  "stats-file \"%s\": exists and is no statistics file: remove it, or choose "
                  "another name",
                  path);
    return is_ours;
}

bool stats_file_check(const char *path, struct error *error)
{
    struct stat status;

    if (path[0] == '\0') {
        error_set(error, "stats-file: expected the path of a file, got an empty text");
        return false;
    }
    if (lstat(path, &status) < 0)
        return true; /* what else there may be, writing will tell */
    if (!S_ISREG(status.st_mode)) {
        error_set(error, "stats-file \"%s\": expected a regular file, which would be replaced",
                  path);
        return false;
    }
    return status.st_size == 0 || check_content(path, error);
}

static int create_anew(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = open(path, flags, 0666);

    /* left by one that was killed: a name with our process id is nobody else's */
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0666);
    return fd;
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length) {
        const ssize_t written = write(fd, text, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

/* Returns false with errno set. */
static bool fill(const char *path, const char *text)
{
    const int fd = create_anew(path);
    bool written;

    if (fd < 0)
        return false;
    written = write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1);
    if (close(fd) < 0)
        written = false;
    return written;
}

static bool replace(const char *path, const char *text, struct error *error)
{
    const size_t size = strlen(path) + sizeof(".4294967295.tmp");
    char *temporary = malloc(size);
    bool replaced = false;

    if (!temporary) {
        error_set(error, "stats-file \"%s\": out of memory", path);
        return false;
    }
    (void)snprintf(temporary, size, "%s.%u.tmp", path, (unsigned)getpid());
    replaced = fill(temporary, text) && rename(temporary, path) == 0;
    if (!replaced) {
        set_error(error, path, "cannot write");
        (void)unlink(temporary);
    }
    free(temporary);
    return replaced;
}

bool stats_file_write(const char *path, const struct counts *counts, const struct run_info *run,
                      struct error *error)
{
    char *text = stats_text(counts, run);
    bool written;

    if (!text) {
        error_set(error, "stats-file \"%s\": out of memory", path);
        return false;
    }
    written = replace(path, text, error);
    free(text);
    return written;
}
