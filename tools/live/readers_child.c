/*
 * The child of a reader: its order, and babeltrace2's graph that it runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers.h"

#include "tools/base/say.h"
#include "tools/reader/graph.h"
#include "viewer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* ---- the configuration ----------------------------------------------------------------------- */

bool readers_read_options(const struct config *config, const struct relay_options *relay,
                          struct readers_options *options, struct error *error)
{
    const struct relay_options at = relay_reached(relay);

    *options = (struct readers_options){
        .is_own_relay = relay->is_own,
        .params = reader_params(config),
        .retry_us = (long)config_integer(config, "retry-us"),
        .flush_timeout_ms = config_integer(config, "flush-timeout-ms"),
        /* this service logs the progress itself */
        .level = say_level() == BT_LOGGING_LEVEL_INFO ? BT_LOGGING_LEVEL_WARNING : say_level(),
    };
    if (!options->params)
        return error_set(error, "out of memory");
    relay_live_url(&at, options->live_url, sizeof(options->live_url));
    (void)snprintf(options->folder, sizeof(options->folder), "%s",
                   config_text(config, "runtime-dir"));
    (void)snprintf(options->follow, sizeof(options->follow), "%s", config_text(config, "follow"));
    return true;
}

/* ---- the order: the sink's parameters for the session ---------------------------------------- */

const char *readers_path_of(const struct live_reader *reader, const char *end,
                            char path[READERS_PATH_SIZE])
{
    (void)snprintf(path, READERS_PATH_SIZE, "%s/live-%s.%s", reader->readers->options.folder,
                   reader->file_name, end);
    return path;
}

/* With file:PATH, each run of a sink has a file: PATH, PATH.2 ... */
static void readers_set_endpoint(const struct live_reader *reader, json_t *params)
{
    const char *endpoint = json_string_value(json_object_get(params, "endpoint"));

    if (endpoint && strncmp(endpoint, "file:", 5) == 0 && reader->readers->starts > 0)
        (void)json_object_set_new(params, "endpoint",
                                  json_sprintf("%s.%u", endpoint, reader->readers->starts + 1));
}

/* Gives each sink a separate spool folder. The sink makes one level of the path only. */
static void readers_set_spool(const struct live_reader *reader, json_t *params)
{
    const char *spool = json_string_value(json_object_get(params, "spool"));

    if (!spool)
        return;
    (void)mkdir(spool, 0700);
    (void)json_object_set_new(params, "spool",
                              json_sprintf("%s/live-%s", spool, reader->file_name));
}

json_t *readers_order(const struct live_reader *reader, bool reads_old_events)
{
    const struct readers_options *options = &reader->readers->options;
    json_t *params = json_deep_copy(options->params), *own;
    char stats[READERS_PATH_SIZE], sent[READERS_PATH_SIZE], statistics[READERS_PATH_SIZE];

    readers_set_endpoint(reader, params);
    readers_set_spool(reader, params);
    own =
        json_pack("{ss, ss, ss, sI, sI}", "stats-file", readers_path_of(reader, "json", stats),
                  "sent-file", readers_path_of(reader, "sent", sent), "statistics-file",
                  readers_path_of(reader, "statistics", statistics), "from-time",
                  (json_int_t)reader->from.time_ns, "from-events", (json_int_t)reader->from.events);
    if (json_object_update(params, own) != 0) {
        json_decref(params);
        params = NULL;
    }
    json_decref(own);
    return json_pack("{so, ss, ss, ss, sb, sb, sI, si}", "params", params, "relay",
                     options->live_url, "host", reader->host, "session", reader->session, "own",
                     reader->is_own, "all", reads_old_events, "retry_us",
                     (json_int_t)options->retry_us, "level", (int)options->level);
}

/* ---- in the child ---------------------------------------------------------------------------- */

static int readers_read(const json_t *order)
{
    const char *relay = text_in(order, "relay");
    const int port = viewer_start(relay, json_is_true(json_object_get(order, "own")),
                                  json_is_true(json_object_get(order, "all")),
                                  number_in(json_object_get(order, "params"), "from-time"));
    char url[1024];

    if (port == 0) {
        say(BK2037, "cannot read %s: %s", relay, strerror(errno));
        return GRAPH_FAILED;
    }
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%d/host/%s/%s", port, text_in(order, "host"),
                   text_in(order, "session"));
    return (int)graph_run(
        &(struct graph_spec){.live_url = url,
                             .sink_params = json_object_get(order, "params"),
                             .retry_us = (long)number_in(order, "retry_us"),
                             .level = (bt_logging_level)number_in(order, "level")});
}

static int readers_run(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    int status;

    (void)prctl(PR_SET_NAME, "blkin-reader");
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* the reader delivers what it has read, then ends */
    status = readers_read(order);
    json_decref(order);
    return status;
}

const struct job readers_job = {.name = "live-reader", .run = readers_run, .ends_cleanly = true};
