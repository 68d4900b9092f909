/*
 * The pipeline's statistics of spans: notices requests, and writes the file of a child process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pipeline.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ASKED_MS           10000
#define STATISTICS_POLL_MS 100
#define WRITE_MS           500

bool pipeline_open_statistics(struct pipeline *pipeline, const struct params *params,
                              struct error *error)
{
    struct pipeline_statistics *statistics = &pipeline->own;
    const char *file = params->statistics_file;

    pipeline->statistics = pipeline->shared ? &pipeline->shared->statistics : statistics;
    if (!file || pipeline->shared)
        return true;
    statistics->file = strdup(file);
    statistics->asked = string_joined(file, ".asked");
    statistics->fresh = string_joined(file, ".new");
    if (!statistics->file || !statistics->asked || !statistics->fresh)
        return error_set(error, "out of memory");
    pipeline_look_at_statistics(pipeline);
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Readers see the old or the new document. */
static bool statistics_put(const struct pipeline_statistics *statistics, const char *text)
{
    const int fd = open(statistics->fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write_all(fd, text, strlen(text));

    if (fd >= 0)
        done = close(fd) == 0 && done;
    return done && rename(statistics->fresh, statistics->file) == 0;
}

/* Returns false with error set. */
static bool statistics_write(const struct pipeline_statistics *statistics, struct error *error)
{
    char *text = live_statistics_text(statistics->live);
    bool is_written;

    errno = ENOMEM;
    is_written = (text && statistics_put(statistics, text)) ||
                 error_set(error, "statistics-file \"%.300s\": cannot be written: %s",
                           statistics->file, strerror(errno));
    free(text);
    return is_written;
}

/* The system's clock sets the time of PATH.asked. */
static void statistics_look_at_file(struct pipeline_statistics *statistics, int64_t now_ms)
{
    struct stat asked;
    int64_t age_ms;

    if (stat(statistics->asked, &asked) != 0)
        return;
    age_ms = wall_clock_ns() / 1000000 -
             ((int64_t)asked.st_mtim.tv_sec * 1000 + asked.st_mtim.tv_nsec / 1000000);
    if (age_ms < ASKED_MS)
        statistics->until_ms = now_ms + ASKED_MS - (age_ms > 0 ? age_ms : 0);
}

/* ---- on and off ------------------------------------------------------------------------------ */

static void statistics_stop(struct pipeline_statistics *statistics)
{
    live_statistics_free(statistics->live);
    statistics->live = NULL;
    if (statistics->file)
        (void)unlink(statistics->file);
}

static void statistics_go_on(struct pipeline_statistics *statistics, int64_t now_ms)
{
    if (statistics->live && !live_statistics_advance(statistics->live, now_ms))
        statistics_stop(statistics);
    if (!statistics->live)
        statistics->live = live_statistics_new();
}

void pipeline_look_at_statistics(struct pipeline *pipeline)
{
    struct pipeline_statistics *statistics = pipeline->statistics;
    const int64_t now_ms = clock_ms();
    struct error error;

    if (now_ms < statistics->next_look_ms)
        return;
    statistics->next_look_ms = now_ms + STATISTICS_POLL_MS;
    if (statistics->file)
        statistics_look_at_file(statistics, now_ms);
    if (now_ms < statistics->until_ms)
        statistics_go_on(statistics, now_ms);
    else if (statistics->live)
        statistics_stop(statistics);
    if (!statistics->live || !statistics->file || now_ms < statistics->next_write_ms)
        return;
    statistics->next_write_ms = now_ms + WRITE_MS;
    if (!statistics_write(statistics, &error))
        pipeline_warn(pipeline, error.text);
}

char *pipeline_statistics(struct pipeline_statistics *statistics)
{
    statistics->until_ms = clock_ms() + ASKED_MS;
    statistics_go_on(statistics, clock_ms());
    return statistics->live ? live_statistics_text(statistics->live) : NULL;
}

/* All spans are known: clients get the last ones, too. */
void pipeline_end_statistics(struct pipeline *pipeline)
{
    struct pipeline_statistics *statistics = &pipeline->own;
    struct error error;

    if (!statistics->live)
        return;
    live_statistics_close_traces(statistics->live);
    if (statistics->file && !statistics_write(statistics, &error))
        pipeline_warn(pipeline, error.text);
}

void pipeline_free_statistics(struct pipeline_statistics *statistics)
{
    live_statistics_free(statistics->live);
    statistics->live = NULL;
    free(statistics->file);
    free(statistics->asked);
    free(statistics->fresh);
    statistics->file = NULL;
}
