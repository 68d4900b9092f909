/*
 * What the child of a reader does: babeltrace2's graph, with the sink's parameters for its session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers_parts.h"

#include "tools/base/privileges.h"
#include "tools/reader/graph.h"
#include "viewer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define AGAIN_MAX 3

static bool readers_set_text(bt_value *params, const char *key, const char *value)
{
    return bt_value_map_insert_string_entry(params, key, value) ==
           BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

const char *readers_path_of(const struct reader *reader, const char *end,
                            char path[READERS_PATH_SIZE])
{
    (void)snprintf(path, READERS_PATH_SIZE, "%s/live-%s.%s", reader->readers->options.folder,
                   reader->file_name, end);
    return path;
}

/* file:PATH is a file for each run of a sink: the first one's, then PATH.2 ... */
static bool readers_set_endpoint(const struct reader *reader, bt_value *params)
{
    const bt_value *endpoint = bt_value_map_borrow_entry_value_const(params, "endpoint");
    char text[4352];

    if (!endpoint || strncmp(bt_value_string_get(endpoint), "file:", 5) != 0 ||
        reader->readers->starts == 0)
        return true;
    (void)snprintf(text, sizeof(text), "%s.%u", bt_value_string_get(endpoint),
                   reader->readers->starts + 1);
    return readers_set_text(params, "endpoint", text);
}

/* A spool is of one sink. Its folder is made by it, but no more than one. */
static bool readers_set_spool(const struct reader *reader, bt_value *params)
{
    const bt_value *spool = bt_value_map_borrow_entry_value_const(params, "spool");
    char path[4352];

    if (!spool)
        return true;
    (void)mkdir(bt_value_string_get(spool), 0700);
    (void)snprintf(path, sizeof(path), "%s/live-%s", bt_value_string_get(spool), reader->file_name);
    return readers_set_text(params, "spool", path);
}

bool readers_reads_all(const struct reader *reader)
{
    return reader->readers->options.is_own_relay && reader->again <= AGAIN_MAX;
}

/* The sink's parameters, with what is this reader's own. NULL: out of memory. */
static bt_value *readers_params_of(const struct reader *reader)
{
    bt_value *params = NULL;
    char path[READERS_PATH_SIZE];

    if (bt_value_copy(reader->readers->options.params, &params) != BT_VALUE_COPY_STATUS_OK)
        return NULL;
    if (readers_set_endpoint(reader, params) && readers_set_spool(reader, params) &&
        readers_set_text(params, "stats-file", readers_path_of(reader, "json", path)) &&
        readers_set_text(params, "checkpoint", readers_path_of(reader, "checkpoint", path)) &&
        readers_set_text(params, "tap", readers_path_of(reader, "tap", path)) &&
        bt_value_map_insert_bool_entry(params, "checkpoint-again",
                                       reader->starts > 0 && readers_reads_all(reader)) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
        bt_value_map_insert_signed_integer_entry(params, "stats-period-ms", READERS_STATS_MS) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        return params;
    bt_value_put_ref(params);
    return NULL;
}

int readers_run_child(void *context)
{
    const struct reader *reader = context;
    const struct readers_options *options = &reader->readers->options;
    bt_value *params = readers_params_of(reader);
    char url[1024];
    const struct graph_spec spec = {.live_url = url,
                                    .sink_params = params,
                                    .retry_us = options->retry_us,
                                    .level = options->level};
    int status, port;

    output_lines_in_child(&reader->lines);
    privileges_give_up();
    (void)prctl(PR_SET_NAME, "blkin-reader");
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* what was read is delivered */
    port = viewer_start(options->live_url, readers_reads_all(reader));
    if (port == 0) {
        fprintf(stderr, "blkin: cannot read %s: %s\n", options->live_url, strerror(errno));
        return GRAPH_FAILED;
    }
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%d/host/%s/%s", port, reader->host,
                   reader->session);
    status = params ? (int)graph_run(&spec) : GRAPH_FAILED;
    bt_value_put_ref(params);
    return status;
}
