/*
 * What the child of a reader does: babeltrace2's graph, with the sink's parameters for its session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers_parts.h"

#include "tools/base/say.h"
#include "tools/reader/graph.h"
#include "tools/reader/reader.h"
#include "viewer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define AGAIN_MAX 3

const char *readers_path_of(const struct live_reader *reader, const char *end,
                            char path[READERS_PATH_SIZE])
{
    (void)snprintf(path, READERS_PATH_SIZE, "%s/live-%s.%s", reader->readers->options.folder,
                   reader->file_name, end);
    return path;
}

/* file:PATH is a file for each run of a sink: the first one's, then PATH.2 ... */
static void readers_set_endpoint(const struct live_reader *reader, json_t *params)
{
    const char *endpoint = json_string_value(json_object_get(params, "endpoint"));

    if (endpoint && strncmp(endpoint, "file:", 5) == 0 && reader->readers->starts > 0)
        (void)json_object_set_new(params, "endpoint",
                                  json_sprintf("%s.%u", endpoint, reader->readers->starts + 1));
}

/* A spool is of one sink. Its folder is made by it, but no more than one. */
static void readers_set_spool(const struct live_reader *reader, json_t *params)
{
    const char *spool = json_string_value(json_object_get(params, "spool"));

    if (!spool)
        return;
    (void)mkdir(spool, 0700);
    (void)json_object_set_new(params, "spool",
                              json_sprintf("%s/live-%s", spool, reader->file_name));
}

bool readers_reads_all(const struct live_reader *reader)
{
    return reader->readers->options.is_own_relay && reader->again <= AGAIN_MAX;
}

/* NULL: out of memory. */
static json_t *readers_order(const struct live_reader *reader)
{
    const struct readers_options *options = &reader->readers->options;
    json_t *params = json_deep_copy(options->params), *own;
    char stats[READERS_PATH_SIZE], checkpoint[READERS_PATH_SIZE], tap[READERS_PATH_SIZE];

    readers_set_endpoint(reader, params);
    readers_set_spool(reader, params);
    own = json_pack("{ss, ss, ss, sb}", "stats-file", readers_path_of(reader, "json", stats),
                    "checkpoint", readers_path_of(reader, "checkpoint", checkpoint), "tap",
                    readers_path_of(reader, "tap", tap), "checkpoint-again",
                    reader->starts > 0 && readers_reads_all(reader));
    if (json_object_update(params, own) != 0) {
        json_decref(params);
        params = NULL;
    }
    json_decref(own);
    return json_pack("{so, ss, ss, ss, sb, sI, si}", "params", params, "relay", options->live_url,
                     "host", reader->host, "session", reader->session, "all",
                     readers_reads_all(reader), "retry_us", (json_int_t)options->retry_us, "level",
                     (int)options->level);
}

bool readers_start_child(struct live_reader *reader)
{
    return child_start_json(reader->readers->loop, &reader->child, &readers_job,
                            readers_order(reader), &reader->lines);
}

/* ---- in the child ---------------------------------------------------------------------------- */

static int readers_read(const json_t *order)
{
    const char *relay = reader_text(order, "relay");
    const int port = viewer_start(relay, json_is_true(json_object_get(order, "all")));
    char url[1024];

    if (port == 0) {
        say(BK2037, "cannot read %s: %s", relay, strerror(errno));
        return GRAPH_FAILED;
    }
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%d/host/%s/%s", port,
                   reader_text(order, "host"), reader_text(order, "session"));
    return (int)graph_run(&(struct graph_spec){
        .live_url = url,
        .sink_params = json_object_get(order, "params"),
        .retry_us = (long)json_integer_value(json_object_get(order, "retry_us")),
        .level = (bt_logging_level)json_integer_value(json_object_get(order, "level"))});
}

static int readers_run(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    int status;

    (void)prctl(PR_SET_NAME, "blkin-reader");
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* what was read is delivered */
    status = readers_read(order);
    json_decref(order);
    return status;
}

const struct job readers_job = {.name = "live-reader", .run = readers_run, .ends_in_order = true};
