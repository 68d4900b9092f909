/*
 * babeltrace2's graph, from recorded traces or a live session to sink.blkin.zipkin, in this
 * process. It is for a child: babeltrace2 aborts on some corrupted packets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_GRAPH_H
#define BLKIN_TOOLS_GRAPH_H

#include <babeltrace2/babeltrace.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct graph_spec {
    const char *live_url;      /* net://HOST:PORT/host/NAME/SESSION; NULL: recorded traces */
    const char *const *traces; /* folders with a file "metadata" each; ends with NULL */
    const json_t *sink_params; /* {"endpoint": "http://...", "batch-spans": 100, ...} */
    long retry_us;             /* how long to wait when a live session has nothing */
    bt_logging_level level;
};

enum graph_status {                       /* as of babeltrace2(1) */
                    GRAPH_ENDED = 0,      /* all delivered */
                    GRAPH_FAILED = 1,     /* said why on the standard error */
                    GRAPH_INTERRUPTED = 2 /* by SIGINT or SIGTERM; what was read is delivered */
};

/*
 * Runs to the end of the traces or the session, or to SIGINT or SIGTERM, of which one is enough
 * also while the relay daemon hangs. The plugin is looked for in $BABELTRACE_PLUGIN_PATH, then
 * where it is installed.
 */
enum graph_status graph_run(const struct graph_spec *spec);

/* Are all plugins there? Says so if not. */
bool graph_can_run(void);

/* babeltrace2's plugin "ctf", and ours; NULL: it is not there. */
const bt_plugin *graph_ctf(void);
const bt_plugin *graph_blkin(void);

#endif
