/*
 * Converts one chunk after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "convert.h"

#include "monotonic.h"
#include "service/graph.h"
#include "service/privileges.h"
#include "service/say.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_RETRY_MS  200
#define LAST_RETRY_MS   10000
#define FAILURES_MAX    2 /* then it is looked for damage */
#define STATS_PERIOD_MS 500
#define WATCH_MS        10000
#define HANG_MS         60000 /* at work for so long, without an event: corrupted input does that */

static void say_error(const struct error *error)
{
    say(BT_LOGGING_LEVEL_ERROR, "%s", error->text);
}

static void save(struct converter *converter)
{
    struct error error;

    if (!totals_save(converter->totals, converter->totals_file, &error))
        say_error(&error);
}

/* By this the sink knows it. */
static void chunk_name(const struct chunk *chunk, char name[PLACE_MAX + CHUNK_MAX])
{
    (void)snprintf(name, PLACE_MAX + CHUNK_MAX, "%s/%s", chunk->place, chunk->name);
}

/* ---- in the child ---------------------------------------------------------------------------- */

/* These are the service's own. */
static const char *const not_passed[] = {
    "prometheus-listen", "stats-file",       "stats-period-ms", "checkpoint",
    "checkpoint-trace",  "checkpoint-flush", "on-full",         "tap"};

static bt_value_map_foreach_entry_func_status pass(const char *key, bt_value *value, void *context)
{
    for (size_t i = 0; i < sizeof(not_passed) / sizeof(not_passed[0]); i++) {
        if (strcmp(key, not_passed[i]) == 0)
            return BT_VALUE_MAP_FOREACH_ENTRY_FUNC_STATUS_OK;
    }
    return bt_value_map_insert_entry(context, key, value) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK
               ? BT_VALUE_MAP_FOREACH_ENTRY_FUNC_STATUS_OK
               : BT_VALUE_MAP_FOREACH_ENTRY_FUNC_STATUS_MEMORY_ERROR;
}

static bool put_text(bt_value *map, const char *key, const char *text)
{
    return bt_value_map_insert_string_entry(map, key, text) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

static bool put_bool(bt_value *map, const char *key, bool value)
{
    return bt_value_map_insert_bool_entry(map, key, value) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

/* A collector that is away at the start is waited for like one that goes. NULL: out of memory. */
static bt_value *sink_params(const struct converter *converter, const char *name)
{
    bt_value *given = config_sink_params(converter->config);
    bt_value *params = bt_value_map_create();
    bool is_whole = given && params;

    is_whole =
        is_whole &&
        bt_value_map_foreach_entry(given, pass, params) == BT_VALUE_MAP_FOREACH_ENTRY_STATUS_OK &&
        (bt_value_map_has_entry(params, "require-collector") ||
         put_bool(params, "require-collector", false)) &&
        put_text(params, "on-full", "block") && put_text(params, "tap", converter->tap) &&
        put_text(params, "checkpoint", converter->checkpoint) &&
        put_text(params, "checkpoint-trace", name) &&
        put_bool(params, "checkpoint-flush", converter->is_last) &&
        put_text(params, "stats-file", converter->stats_file) &&
        bt_value_map_insert_signed_integer_entry(params, "stats-period-ms", STATS_PERIOD_MS) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
    bt_value_put_ref(given);
    if (is_whole)
        return params;
    bt_value_put_ref(params);
    return NULL;
}

/* ---- a trace without events */

static const char nothing_metadata[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 64; align = 8; } := u64;\n"
    "trace { major = 1; minor = 8; byte_order = le; };\n"
    "clock { name = monotonic; freq = 1000000000; offset = 0; };\n"
    "typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := ns;\n"
    "stream {\n"
    "    packet.context := struct {\n"
    "        ns timestamp_begin; ns timestamp_end; u64 content_size; u64 packet_size;\n"
    "    };\n"
    "    event.header := struct { ns timestamp; };\n"
    "};\n"
    "event { name = none; fields := struct { u64 nothing; }; };\n";

static bool write_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[PATH_ROOM];
    FILE *file;
    bool is_whole;

    path_set(path, "%s/%s", folder, name);
    file = fopen(path, "we");
    is_whole = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && is_whole;
}

/* It was recorded until end_ns; 0: it stands for one that is gone. */
static bool make_nothing(const struct converter *converter, int64_t end_ns, char folder[PATH_ROOM])
{
    const uint64_t packet[4] = {htole64((uint64_t)end_ns), htole64((uint64_t)end_ns),
                                htole64(8 * sizeof(packet)), htole64(8 * sizeof(packet))};

    path_set(folder, "%s/trash/nothing", converter->store->output);
    return tree_remove(folder) && folder_make(folder) &&
           write_file(folder, "metadata", nothing_metadata, sizeof(nothing_metadata) - 1) &&
           (!end_ns || write_file(folder, "stream", packet, sizeof(packet)));
}

/* By the clock of the trace, which does not follow the steps of the wall clock. */
static int64_t end_of_empty(const struct converter *converter)
{
    const struct totals *totals = converter->totals;
    const int64_t since_ns = converter->chunk.closed_ns - totals->closed_ns;

    if (converter->gives_up || converter->is_last || !totals->trace_ns || !totals->closed_ns)
        return 0;
    return totals->trace_ns + (since_ns > 0 ? since_ns : 0);
}

static int run_sink(const struct converter *converter, const char *const *traces, const char *name)
{
    const struct graph_spec spec = {
        .traces = traces, .sink_params = sink_params(converter, name), .level = say_level()};

    return spec.sink_params ? (int)graph_run(&spec) : GRAPH_FAILED;
}

static int run_child(void *argument)
{
    const struct converter *converter = argument;
    char path[PATH_ROOM], name[PLACE_MAX + CHUNK_MAX];
    const char *nothing[] = {path, NULL};
    char **traces = NULL;
    size_t count = 0;

    output_lines_in_child(&converter->lines);
    privileges_give_up();
    chunk_name(&converter->chunk, name);
    if (!converter->gives_up && !converter->is_last) {
        store_chunk_path(converter->store, &converter->chunk, path);
        traces = trace_folders(path, &count);
        if (!traces) {
            fprintf(stderr, "blkin rotate: cannot read %s: %s\n", path, strerror(errno));
            return GRAPH_FAILED;
        }
    }
    if (count)
        return run_sink(converter, (const char *const *)traces, name);
    if (make_nothing(converter, end_of_empty(converter), path))
        return run_sink(converter, nothing, name);
    fprintf(stderr, "blkin rotate: cannot write %s: %s\n", path, strerror(errno));
    return GRAPH_FAILED;
}

/* ---- after it -------------------------------------------------------------------------------- */

static void start(struct converter *converter);

static void retry(void *context)
{
    start(context);
}

static void retry_later(struct converter *converter)
{
    int64_t in_ms = FIRST_RETRY_MS;

    for (unsigned i = 1; i < converter->failures && in_ms < LAST_RETRY_MS; i++)
        in_ms *= 2;
    timer_set(converter->loop, &converter->retry, in_ms < LAST_RETRY_MS ? in_ms : LAST_RETRY_MS);
}

static void say_how_it_ended(const struct converter *converter, int status)
{
    char name[PLACE_MAX + CHUNK_MAX];

    chunk_name(&converter->chunk, name);
    if (WIFSIGNALED(status))
        say(BT_LOGGING_LEVEL_WARNING, "the conversion of %s was ended by signal %d (%s): again",
            name, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        say(BT_LOGGING_LEVEL_WARNING, "the conversion of %s has failed: again", name);
}

static void damage_done(void *context, const void *result)
{
    struct converter *converter = context;
    const struct damage_result *found = result;

    converter->is_damage_task = false;
    converter->was_looked_at = true;
    if (found) {
        converter->totals->files_damaged += found->files;
        converter->totals->bytes_damaged += found->bytes;
        save(converter);
    }
    if (converter->is_stopping)
        converter->idle(converter->context);
    else if (found && found->files)
        start(converter);
    else
        retry_later(converter);
}

/* As large as a tenth of what the chunks may take. */
static void look_for_damage(struct converter *converter)
{
    struct damage_order order = {
        .chunk = converter->chunk,
        .max_bytes = (uint64_t)config_integer(converter->config, "max-disk-bytes") / 10};

    (void)snprintf(order.store.output, sizeof(order.store.output), "%s", converter->store->output);
    converter->damage_task.done = damage_done;
    converter->damage_task.context = converter;
    converter->is_damage_task = task_start(converter->loop, &converter->damage_task, damage_look,
                                           &order, sizeof(struct damage_result), DAMAGE_LIMIT_MS);
    if (!converter->is_damage_task)
        retry_later(converter);
}

static void note_success(struct converter *converter)
{
    struct totals *totals = converter->totals;

    if (!converter->gives_up && !converter->is_last) {
        totals->closed_ns = converter->chunk.closed_ns;
        totals->chunks_converted++;
        totals->bytes_converted += converter->chunk.bytes;
        if (!store_remove(converter->store, &converter->chunk))
            say(BT_LOGGING_LEVEL_ERROR, "cannot delete %s/%s, which is converted: %s",
                converter->chunk.place, converter->chunk.name, strerror(errno));
    }
    totals->current[0] = '\0';
    converter->chunk.name[0] = '\0';
    converter->is_last = false;
    converter->gives_up = false;
    save(converter);
    converter->idle(converter->context);
}

static void note_failure(struct converter *converter, int status, uint64_t settled)
{
    converter->totals->children_failed++;
    converter->failures = settled ? 1 : converter->failures + 1;
    save(converter);
    say_how_it_ended(converter, status);
    if (converter->failures >= FAILURES_MAX && !converter->was_looked_at && !converter->is_last &&
        !converter->gives_up)
        look_for_damage(converter);
    else
        retry_later(converter);
}

static void ended(void *context, int status)
{
    struct converter *converter = context;
    const uint64_t settled = totals_add_run(converter->totals, converter->stats_file);

    timer_clear(converter->loop, &converter->watch);
    output_lines_close(&converter->lines);
    if (status == 0) {
        note_success(converter);
    } else if (converter->is_stopping) {
        save(converter);
        converter->idle(converter->context);
    } else {
        note_failure(converter, status, settled);
    }
}

/* ---- does it hang? --------------------------------------------------------------------------- */

/* The time that the child has been at work. */
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

/* One that waits for its collector does not work. */
static void watch(void *context)
{
    struct converter *converter = context;
    const uint64_t ticks = ticks_of(converter->child.pid);
    const uint64_t half = (uint64_t)sysconf(_SC_CLK_TCK) * WATCH_MS / 1000 / 4;
    struct reader_account run = {.has_ended = false};
    const bool works = ticks - converter->ticks_seen > half;
    uint64_t progress = 0;

    if (reader_account_read(converter->stats_file, &run))
        progress = run.counts.input.events + run.counts.output.requests;
    if (!works || progress != converter->events_seen)
        converter->progress_ms = clock_ms();
    converter->ticks_seen = ticks;
    converter->events_seen = progress;
    if (clock_ms() - converter->progress_ms > HANG_MS) {
        say(BT_LOGGING_LEVEL_WARNING, "the conversion of %s/%s goes in circles: it is killed",
            converter->chunk.place, converter->chunk.name);
        (void)kill(converter->child.pid, SIGKILL);
    }
    timer_set(converter->loop, &converter->watch, WATCH_MS);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void start(struct converter *converter)
{
    char name[PLACE_MAX + CHUNK_MAX];

    chunk_name(&converter->chunk, name);
    if (strcmp(converter->totals->current, name) != 0) {
        (void)snprintf(converter->totals->current, sizeof(converter->totals->current), "%s", name);
        save(converter);
    }
    converter->child = (struct child){.ended = ended, .context = converter};
    (void)snprintf(converter->lines.source, sizeof(converter->lines.source), "%s", name);
    (void)unlink(converter->stats_file);
    if (!output_lines_open(&converter->lines, converter->loop) ||
        !child_start(converter->loop, &converter->child, run_child, converter)) {
        say(BT_LOGGING_LEVEL_ERROR, "cannot start a child: %s", strerror(errno));
        output_lines_close(&converter->lines);
        converter->failures++;
        retry_later(converter);
        return;
    }
    output_lines_started(&converter->lines);
    converter->events_seen = converter->ticks_seen = 0;
    converter->progress_ms = clock_ms();
    timer_set(converter->loop, &converter->watch, WATCH_MS);
}

void converter_open(struct converter *converter)
{
    converter->lines.input.fd = -1;
    /* each chunk's account: `blkin status` has the sum */
    converter->lines.dull = say_level() > BT_LOGGING_LEVEL_INFO ? "events: " : NULL;
    converter->retry = (struct timer){.due = retry, .context = converter};
    converter->watch = (struct timer){.due = watch, .context = converter};
    /* of one that was killed together with the service before */
    if (totals_add_run(converter->totals, converter->stats_file))
        save(converter);
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
    else if (strcmp(converter->totals->current, name) != 0 && !converter->totals->has_open &&
             is_empty(converter, chunk)) {
        note_success(converter);
        return;
    }
    start(converter);
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
    start(converter);
}

void converter_stop(struct converter *converter)
{
    converter->is_stopping = true;
    timer_clear(converter->loop, &converter->retry);
    if (converter->child.pid)
        (void)kill(converter->child.pid, SIGTERM);
    else if (converter->is_damage_task)
        (void)kill(converter->damage_task.child.pid, SIGKILL);
    else
        converter->idle(converter->context);
}

struct counts converter_counts(const struct converter *converter)
{
    struct counts counts = converter->totals->sinks;
    struct reader_account run;

    if (converter->child.pid && reader_account_read(converter->stats_file, &run))
        counts_add(&counts, &run.counts);
    return counts;
}
