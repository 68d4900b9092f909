/*
 * Converts one chunk after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "convert.h"
#include "nothing.h"

#include "babeltrace-plugin/base/backoff.h"

#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_RETRY_MS 200
#define LAST_RETRY_MS  10000
#define FAILURES_MAX   2 /* then it is looked for damage */

static void converter_save(struct converter *converter)
{
    rotate_totals_save(converter->totals, converter->totals_file);
}

/* By this the sink knows it. */
static void chunk_name(const struct chunk *chunk, char name[PLACE_MAX + CHUNK_MAX])
{
    (void)snprintf(name, PLACE_MAX + CHUNK_MAX, "%s/%s", chunk->place, chunk->name);
}

/* ---- in the child ---------------------------------------------------------------------------- */

bool rotate_fsync_is_batch(const struct config *config)
{
    const char *when = config_text(config, "spool-fsync");

    return config_text(config, "spool") && when && strcmp(when, "second") == 0 &&
           strcmp(config_origin(config, "spool-fsync"), "default") != 0;
}

static int converter_run(const json_t *order)
{
    const char *const chunk = text_in(order, "chunk"), *const empty = text_in(order, "empty");
    const char *const nothing[] = {empty, NULL};
    char **traces = NULL;
    size_t count = 0;

    if (*chunk) {
        traces = trace_folders(chunk, &count);
        if (!traces) {
            say(BK3023, "cannot read %s: %s", chunk, strerror(errno));
            return 1;
        }
    }
    if (count)
        return reader_run((const char *const *)traces, order);
    if (nothing_make(empty, number_in(order, "end_ns")))
        return reader_run(nothing, order);
    say(BK3026, "cannot write %s: %s", empty, strerror(errno));
    return 1;
}

static int converter_run_job(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    const int status = converter_run(order);

    json_decref(order);
    return status;
}

const struct job converter_job = {
    .name = "rotate-reader", .run = converter_run_job, .ends_in_order = true};

/* ---- its order ------------------------------------------------------------------------------- */

/* By the clock of the trace, which does not follow the steps of the wall clock. */
static int64_t end_of_empty(const struct converter *converter)
{
    const struct rotate_totals *totals = converter->totals;
    const int64_t since_ns = converter->chunk.closed_ns - totals->closed_ns;

    if (converter->gives_up || converter->is_last || !totals->readers.trace_ns ||
        !totals->closed_ns)
        return 0;
    return totals->readers.trace_ns + (since_ns > 0 ? since_ns : 0);
}

/* NULL: out of memory. */
static json_t *converter_order(const struct converter *converter, const char *name)
{
    const bool is_chunk = !converter->gives_up && !converter->is_last;
    json_t *params, *order;
    char chunk[PATH_ROOM], empty[PATH_ROOM];

    params = json_pack("{ss, ss, ss, ss, sb}", "on-full", "block", "tap", converter->tap,
                       "checkpoint", converter->checkpoint, "checkpoint-trace", name,
                       "checkpoint-flush", converter->is_last);
    /* the sink would say for each chunk that it is so: rotate says it once */
    if (rotate_fsync_is_batch(converter->config))
        (void)json_object_set_new(params, "spool-fsync", json_string("batch"));
    store_chunk_path(converter->store, &converter->chunk, chunk);
    path_set(empty, "%s/trash/nothing", converter->store->output);
    order = json_pack("{ss, ss, sI}", "chunk", is_chunk ? chunk : "", "empty", empty, "end_ns",
                      (json_int_t)end_of_empty(converter));
    return reader_order(&converter->reader, order, converter->config, params);
}

/* ---- after it -------------------------------------------------------------------------------- */

static void converter_start(struct converter *converter);

static void converter_retry(void *context)
{
    converter_start(context);
}

static void converter_retry_later(struct converter *converter)
{
    timer_set(converter->loop, &converter->retry,
              backoff_ms(converter->failures, FIRST_RETRY_MS, LAST_RETRY_MS));
}

static void say_how_it_ended(const struct converter *converter, int status)
{
    char name[PLACE_MAX + CHUNK_MAX];

    chunk_name(&converter->chunk, name);
    if (WIFSIGNALED(status))
        say(BK3020, "the conversion of %s was ended by signal %d (%s): again", name,
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        say(BK3021, "the conversion of %s has failed: again", name);
}

static void damage_done(void *context, const void *result)
{
    struct converter *converter = context;
    const struct damage_result *found = result;

    converter->is_damage_task = false;
    converter->was_looked_at = !found || !found->reads_nothing;
    if (found) {
        converter->totals->files_damaged += found->files;
        converter->totals->bytes_damaged += found->bytes;
        converter_save(converter);
    }
    if (converter->is_stopping)
        converter->idle(converter->context);
    else if (found && found->files)
        converter_start(converter);
    else
        converter_retry_later(converter);
}

#define DAMAGED_BYTES (UINT64_C(1) << 30)

/* As large as a tenth of what the chunks may take. */
static void look_for_damage(struct converter *converter)
{
    const uint64_t max_bytes = (uint64_t)config_integer(converter->config, "max-disk-bytes");
    struct damage_order order = {.store = store_folders(converter->store),
                                 .chunk = converter->chunk,
                                 .max_bytes = max_bytes ? max_bytes / 10 : DAMAGED_BYTES};

    converter->damage_task.done = damage_done;
    converter->damage_task.context = converter;
    converter->is_damage_task = task_start(converter->loop, &converter->damage_task, &damage_job,
                                           &order, sizeof(order), DAMAGE_LIMIT_MS);
    if (!converter->is_damage_task)
        converter_retry_later(converter);
}

/* What the saver has to tell; NULL: nothing. */
static void say_problem(const char *problem)
{
    if (problem)
        say(BK3022, "%s", problem);
}

static void chunk_is_done(void *context, const char *problem)
{
    struct converter *converter = context;

    say_problem(problem);
    converter->chunk.name[0] = '\0';
    converter->is_last = false;
    converter->gives_up = false;
    converter->idle(converter->context);
}

/* The next chunk begins when this one's name is gone from the disk: after a power cut the sink's
 * checkpoint knows the last chunk only. */
static void note_success(struct converter *converter)
{
    struct rotate_totals *totals = converter->totals;
    const bool has_chunk = !converter->gives_up && !converter->is_last;

    if (has_chunk) {
        if (totals->readers.trace_ns != converter->trace_ns)
            totals->closed_ns = converter->chunk.closed_ns;
        converter->trace_ns = totals->readers.trace_ns;
        totals->chunks_converted++;
        totals->bytes_converted += converter->chunk.bytes;
    }
    totals->current[0] = '\0';
    converter_save(converter); /* what it gave is in the account on disk before it is gone */
    if (has_chunk)
        store_remove_later(converter->store, &converter->chunk);
    converter->saved = (struct saver_wait){.done = chunk_is_done, .context = converter};
    saver_then(&converter->saved);
}

static void note_failure(struct converter *converter, int status, uint64_t settled)
{
    converter->totals->children_failed++;
    converter->failures = settled ? 1 : converter->failures + 1;
    converter_save(converter);
    say_how_it_ended(converter, status);
    if (converter->failures >= FAILURES_MAX && !converter->was_looked_at && !converter->is_last &&
        !converter->gives_up)
        look_for_damage(converter);
    else
        converter_retry_later(converter);
}

static void converter_ended(void *context, int status)
{
    struct converter *converter = context;
    const uint64_t settled =
        totals_add_run(&converter->totals->readers, converter->reader.stats_file);

    if (status == 0) {
        note_success(converter);
    } else if (converter->is_stopping) {
        converter_save(converter);
        converter->idle(converter->context);
    } else {
        note_failure(converter, status, settled);
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

static void start_child(void *context, const char *problem)
{
    struct converter *converter = context;
    char name[PLACE_MAX + CHUNK_MAX];

    say_problem(problem);
    if (converter->is_stopping)
        return;
    chunk_name(&converter->chunk, name);
    if (reader_start(&converter->reader, name, &converter_job, converter_order(converter, name)))
        return;
    converter->failures++;
    converter_retry_later(converter);
}

/* The child's account replaces that of the child before, and its checkpoint names the chunk: so
 * what was counted, and what is under way, are on disk before. */
static void converter_start(struct converter *converter)
{
    char name[PLACE_MAX + CHUNK_MAX];

    chunk_name(&converter->chunk, name);
    if (strcmp(converter->totals->current, name) != 0) {
        (void)snprintf(converter->totals->current, sizeof(converter->totals->current), "%s", name);
        converter_save(converter);
    }
    converter->saved = (struct saver_wait){.done = start_child, .context = converter};
    saver_then(&converter->saved);
}

void converter_open(struct converter *converter)
{
    converter->reader.loop = converter->loop;
    converter->reader.ended = converter_ended;
    converter->reader.context = converter;
    converter->trace_ns = converter->totals->readers.trace_ns;
    reader_open(&converter->reader);
    converter->retry = (struct timer){.due = converter_retry, .context = converter};
    /* of one that was killed together with the service before */
    if (totals_add_run(&converter->totals->readers, converter->reader.stats_file))
        converter_save(converter);
}

bool converter_is_busy(const struct converter *converter)
{
    return converter->chunk.name[0] != '\0';
}

static bool is_empty(const struct converter *converter, const struct chunk *chunk)
{
    char path[PATH_ROOM];
    char **traces;
    size_t count = 1;

    store_chunk_path(converter->store, chunk, path);
    traces = trace_folders(path, &count);
    trace_folders_free(traces);
    return count == 0;
}

/* The one that was under way is not there any more: "PLACE/CHUNK" is its name. */
static bool is_gone(const struct converter *converter, struct chunk *gone)
{
    const char *slash = strchr(converter->totals->current, '/');
    char path[PATH_ROOM];

    if (!slash)
        return false;
    *gone = (struct chunk){.number = 0};
    (void)snprintf(gone->place, sizeof(gone->place), "%.*s",
                   (int)(slash - converter->totals->current), converter->totals->current);
    (void)snprintf(gone->name, sizeof(gone->name), "%s", slash + 1);
    store_chunk_path(converter->store, gone, path);
    return access(path, F_OK) != 0;
}

void converter_take(struct converter *converter, const struct chunk *chunk)
{
    char name[PLACE_MAX + CHUNK_MAX];
    struct chunk gone;

    chunk_name(chunk, name);
    converter->failures = 0;
    converter->was_looked_at = false;
    converter->chunk = *chunk;
    converter->gives_up = is_gone(converter, &gone);
    if (converter->gives_up)
        converter->chunk = gone;
    else if (strcmp(converter->totals->current, name) != 0 &&
             !converter->totals->readers.has_open && is_empty(converter, chunk)) {
        note_success(converter);
        return;
    }
    converter_start(converter);
}

void converter_finish(struct converter *converter)
{
    struct chunk gone;

    converter->failures = 0;
    converter->gives_up = is_gone(converter, &gone);
    if (converter->gives_up) {
        converter->chunk = gone;
    } else {
        converter->is_last = true;
        converter->chunk = (struct chunk){.place = "end"};
        (void)snprintf(converter->chunk.name, sizeof(converter->chunk.name), "%lld",
                       (long long)time(NULL));
    }
    converter_start(converter);
}

void converter_stop(struct converter *converter)
{
    converter->is_stopping = true;
    timer_clear(converter->loop, &converter->retry);
    if (converter->reader.child.pid)
        (void)kill(converter->reader.child.pid, SIGTERM);
    else if (converter->is_damage_task)
        task_kill(&converter->damage_task);
    else
        converter->idle(converter->context);
}

struct counts converter_counts(const struct converter *converter)
{
    struct counts counts = converter->totals->readers.sinks;
    struct reader_account run;

    if (reader_account(&converter->reader, &run))
        totals_add(&counts, &run);
    return counts;
}
