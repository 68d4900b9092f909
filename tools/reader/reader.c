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
#include <string.h>
#include <unistd.h>

#define STATS_PERIOD_MS 500
#define WATCH_MS        10000
#define SILENT_MS       180000 /* neither at work nor waiting for its collector */
#define HANG_MS         60000 /* at work for so long, without an event: corrupted input does that */

/* ---- in the child ---------------------------------------------------------------------------- */

/* These are the service's own. */
static const char *const not_passed[] = {
    "prometheus-listen", "stats-file",       "stats-period-ms", "checkpoint", "checkpoint-trace",
    "checkpoint-flush",  "checkpoint-again", "on-full",         "tap",        "only-traces",
    "only-found"};

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

bool reader_put_text(bt_value *params, const char *key, const char *text)
{
    return bt_value_map_insert_string_entry(params, key, text) ==
           BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

bool reader_put_bool(bt_value *params, const char *key, bool value)
{
    return bt_value_map_insert_bool_entry(params, key, value) ==
           BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

/* A collector that is away at the start is waited for like one that goes. */
bt_value *reader_params(const struct reader *reader)
{
    bt_value *given = config_sink_params(reader->config);
    bt_value *params = bt_value_map_create();
    bool is_whole = given && params;

    is_whole =
        is_whole &&
        bt_value_map_foreach_entry(given, pass, params) == BT_VALUE_MAP_FOREACH_ENTRY_STATUS_OK &&
        (bt_value_map_has_entry(params, "require-collector") ||
         reader_put_bool(params, "require-collector", false)) &&
        reader_put_text(params, "on-full", "block") &&
        reader_put_text(params, "stats-file", reader->stats_file) &&
        bt_value_map_insert_signed_integer_entry(params, "stats-period-ms", STATS_PERIOD_MS) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
    bt_value_put_ref(given);
    if (is_whole)
        return params;
    bt_value_put_ref(params);
    return NULL;
}

int reader_run(const char *const *traces, const bt_value *params)
{
    const struct graph_spec spec = {.traces = traces, .sink_params = params, .level = say_level()};
    const int status = params ? (int)graph_run(&spec) : GRAPH_FAILED;

    bt_value_put_ref(params);
    return status;
}

struct reader_call {
    const struct reader *reader;
    int (*run)(void *argument);
    void *argument;
};

static int run_child(void *argument)
{
    const struct reader_call *call = argument;

    output_lines_in_child(&call->reader->lines);
    (void)unlink(call->reader->stats_file); /* here, as a disk may hang */
    privileges_give_up();
    return call->run(call->argument);
}

bool reader_account(const struct reader *reader, struct reader_account *account)
{
    struct reader_account run = {.has_ended = false};

    if (!reader->child.pid || !reader_account_read(reader->stats_file, &run) ||
        run.pid != reader->child.pid)
        return false;
    *account = run;
    return true;
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

static void kill_child(const struct reader *reader, const char *why)
{
    say(BT_LOGGING_LEVEL_WARNING, "the reading of %s %s: it is killed", reader->lines.source, why);
    (void)kill(reader->child.pid, SIGKILL);
}

/*
 * One that waits for its collector does not work, and may wait for ever: its account tells that
 * spans wait. One that is locked up tells nothing, or that nothing waits.
 */
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
        kill_child(reader, "goes in circles");
    else if (now_ms - reader->silent_since_ms > reader->silent_ms)
        kill_child(reader, "does nothing, and waits for no collector");
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
    /* each one's account: `blkin status` has the sum */
    reader->lines.dull = say_level() > BT_LOGGING_LEVEL_INFO ? "events: " : NULL;
    reader->watch = (struct timer){.due = watch, .context = reader};
    if (!reader->watch_ms)
        reader->watch_ms = WATCH_MS;
    if (!reader->hang_ms)
        reader->hang_ms = HANG_MS;
    if (!reader->silent_ms)
        reader->silent_ms = SILENT_MS;
}

bool reader_start(struct reader *reader, const char *name, int (*run)(void *argument),
                  void *argument)
{
    struct reader_call call = {reader, run, argument};

    (void)snprintf(reader->lines.source, sizeof(reader->lines.source), "%s", name);
    if (!output_lines_open(&reader->lines, reader->loop) ||
        !child_start(reader->loop, &reader->child, run_child, &call)) {
        say(BT_LOGGING_LEVEL_ERROR, "cannot start a child: %s", strerror(errno));
        output_lines_close(&reader->lines);
        return false;
    }
    output_lines_started(&reader->lines);
    reader->progress_seen = reader->ticks_seen = 0;
    reader->progress_ms = reader->silent_since_ms = clock_ms();
    timer_set(reader->loop, &reader->watch, reader->watch_ms);
    return true;
}
