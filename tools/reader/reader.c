/*
 * A reader: a child that runs the sink over recorded traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "reader.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "graph.h"
#include "tools/base/privileges.h"
#include "tools/base/reader_account.h"
#include "tools/base/say.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATS_PERIOD_MS 500
#define READER_WATCH_MS 10000
#define SILENT_MS       180000 /* without CPU time, and not waiting for its collector */
#define HANG_MS         60000  /* CPU time without an event, as with corrupted input */

/* ---- orders ---------------------------------------------------------------------------------- */

json_t *reader_params(const struct config *config)
{
    json_t *params = config_sink_json(config);

    if (!params)
        return NULL;
    (void)json_object_del(params, "prometheus-listen");
    (void)json_object_del(params, "stats-file");
    /* waits for a collector that is away at the start */
    if (!json_object_get(params, "require-collector"))
        (void)json_object_set_new(params, "require-collector", json_false());
    (void)json_object_set_new(params, "stats-period-ms", json_integer(STATS_PERIOD_MS));
    return params;
}

bool reader_endpoint_fits(const struct config *config, struct error *error)
{
    static const char scheme[] = "file:";
    const char *endpoint = config_text(config, "endpoint");
    struct stat status;

    if (!endpoint || strncasecmp(endpoint, scheme, strlen(scheme)) != 0 ||
        (stat(endpoint + strlen(scheme), &status) == 0 && !S_ISREG(status.st_mode)))
        return true;
    return error_set(error,
                     "endpoint \"%.800s\" is a file, which each delivery here would have to "
                     "overwrite: expected http://, https:// or kafka://",
                     endpoint);
}

json_t *reader_order(const struct reader *reader, json_t *order, const struct config *config,
                     json_t *others)
{
    json_t *params = config ? reader_params(config) : json_object();
    const bool is_whole =
        order && params && json_object_update(params, others) == 0 &&
        json_object_set_new(params, "stats-file", json_string(reader->stats_file)) == 0 &&
        json_object_set(order, "params", params) == 0 &&
        json_object_set_new(order, "level", json_integer(say_level())) == 0;

    json_decref(others);
    json_decref(params);
    if (is_whole)
        return order;
    json_decref(order);
    return NULL;
}

/* ---- in the child ---------------------------------------------------------------------------- */

json_t *reader_begin(const void *bytes, size_t size)
{
    json_t *order = json_loadb(bytes, size, 0, NULL);

    if (!order)
        abort();
    (void)unlink(text_in(json_object_get(order, "params"), "stats-file"));
    privileges_give_up();
    return order;
}

/* ---- the account ----------------------------------------------------------------------------- */

bool reader_account(const struct reader *reader, struct reader_account *account)
{
    struct reader_account run = {.has_ended = false};

    if (!reader->child.pid || !reader_account_read(reader->stats_file, &run) ||
        run.pid != reader->child.pid)
        return false;
    *account = run;
    return true;
}

/* ---- hanging readers ------------------------------------------------------------------------- */

/* Returns the CPU time of the child. */
static uint64_t ticks_of(pid_t pid)
{
    char path[64], text[1024] = "";
    unsigned long long user = 0, kernel = 0;
    const char *rest;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(text, sizeof(text), file) && (rest = strrchr(text, ')')) != NULL)
        (void)sscanf(rest, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
                     &kernel);
    (void)fclose(file);
    return user + kernel;
}

static void kill_child(const struct reader *reader, const char *why)
{
    say(BK1051, "the reading of %s %s: it is killed", reader->lines.source, why);
    (void)kill(reader->child.pid, SIGKILL);
}

/* Kills a hanging child. A child may wait for its collector without limit: its account then shows
 * waiting spans. A deadlocked child shows none. */
static void watch(void *context)
{
    struct reader *reader = context;
    const uint64_t ticks = ticks_of(reader->child.pid);
    const int64_t quarter = sysconf(_SC_CLK_TCK) * reader->watch_ms / 1000 / 4;
    const int64_t now_ms = clock_ms();
    struct reader_account run = {.has_ended = false};
    const bool works = ticks - reader->ticks_seen > (uint64_t)quarter;
    const bool is_told = reader_account(reader, &run);
    const uint64_t progress =
        is_told ? run.counts.input.events + run.counts.output.requests : reader->progress_seen;
    const bool gets_on = progress != reader->progress_seen;

    if (!works || gets_on)
        reader->progress_ms = now_ms;
    if (works || gets_on || (is_told && !run.has_ended && run.counts.output.waiting))
        reader->silent_since_ms = now_ms;
    reader->ticks_seen = ticks;
    reader->progress_seen = progress;
    if (now_ms - reader->progress_ms > reader->hang_ms)
        kill_child(reader, "uses CPU time without progress");
    else if (now_ms - reader->silent_since_ms > reader->silent_ms)
        kill_child(reader, "makes no progress, and does not wait for a collector");
    timer_set(reader->loop, &reader->watch, reader->watch_ms);
}

/* ---- starting and ending --------------------------------------------------------------------- */

static void child_ended(void *context, int status)
{
    struct reader *reader = context;

    timer_clear(reader->loop, &reader->watch);
    output_lines_close(&reader->lines);
    reader->ended(reader->context, status);
}

void reader_open(struct reader *reader)
{
    reader->child = (struct child){.ended = child_ended, .context = reader};
    reader->lines.input.fd = -1;
    /* the child's account; `blkin status` has the sum */
    reader->lines.ignored = say_level() > BT_LOGGING_LEVEL_INFO ? "events: " : NULL;
    reader->watch = (struct timer){.due = watch, .context = reader};
    if (!reader->watch_ms)
        reader->watch_ms = READER_WATCH_MS;
    if (!reader->hang_ms)
        reader->hang_ms = HANG_MS;
    if (!reader->silent_ms)
        reader->silent_ms = SILENT_MS;
}

bool reader_start(struct reader *reader, const char *name, const struct job *job, json_t *order)
{
    (void)snprintf(reader->lines.source, sizeof(reader->lines.source), "%s", name);
    if (!child_start_json(reader->loop, &reader->child, job, order, &reader->lines)) {
        say(BK1050, "cannot start a child: %s", strerror(errno));
        return false;
    }
    reader->progress_seen = reader->ticks_seen = 0;
    reader->progress_ms = reader->silent_since_ms = clock_ms();
    timer_set(reader->loop, &reader->watch, reader->watch_ms);
    return true;
}
