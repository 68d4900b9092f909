/*
 * Runs babeltrace2's graph in this process: from recorded traces or a live session to
 * sink.blkin.zipkin. A service runs the graph in a child, as babeltrace2 aborts on some corrupted
 * packets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_GRAPH_H
#define BLKIN_TOOLS_READER_GRAPH_H

#include <babeltrace2/babeltrace.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct graph_spec {
    const char *live_url;      /* net://HOST:PORT/host/NAME/SESSION; NULL: recorded traces */
    const char *const *traces; /* folders with a file "metadata" each; ends with NULL */
    const json_t *sink_params; /* {"endpoint": "http://...", "batch-spans": 100, ...} */
    long retry_us;             /* the pause after a look that found no events of a live session */
    bt_logging_level level;
};

/* The exit statuses of babeltrace2(1). */
enum graph_status {
    GRAPH_ENDED = 0,       /* all events were read */
    GRAPH_FAILED = 1,      /* the reason is on the standard error */
    GRAPH_INTERRUPTED = 2, /* by SIGINT or SIGTERM, after the delivery of all events read */
};

/*
 * Runs until the traces or the session end, or until SIGINT or SIGTERM. One signal is enough, even
 * if the relay daemon hangs. Searches the plugin in $BABELTRACE_PLUGIN_PATH, then in the installed
 * folder.
 */
enum graph_status graph_run(const struct graph_spec *spec);

/* Returns whether all plugins exist. Prints an error about a missing plugin. */
bool graph_can_run(void);

/* Return babeltrace2's plugin "ctf", and BlkKin's plugin; NULL: missing. */
const bt_plugin *graph_ctf(void);
const bt_plugin *graph_blkin(void);

#endif
