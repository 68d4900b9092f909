/*
 * Runs babeltrace2's graph in this process: from a live session to sink.blkin.zipkin. A service
 * runs the graph in a child, as babeltrace2 aborts on some corrupted packets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_GRAPH_H
#define BLKIN_TOOLS_READER_GRAPH_H

#include "tools/base/child.h"
#include "tools/base/json.h"
#include "tools/config/config.h"

#include <babeltrace2/babeltrace.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_spec {
    const char *live_url;      /* net://HOST:PORT/host/NAME/SESSION */
    const json_t *sink_params; /* {"endpoint": "http://...", "batch-spans": 100, ...} */
    long retry_us;             /* the pause after a look that found no events */
    bt_logging_level level;
};

/* The exit statuses of babeltrace2(1). */
enum graph_status {
    GRAPH_ENDED = 0,       /* all events were read */
    GRAPH_FAILED = 1,      /* the reason is on the standard error */
    GRAPH_INTERRUPTED = 2, /* by SIGINT or SIGTERM, after the delivery of all events read */
};

/*
 * Runs until the session ends, or until SIGINT or SIGTERM. One signal is enough, even if the relay
 * daemon hangs. Searches for the plugin in $BABELTRACE_PLUGIN_PATH, then in the installed folder.
 */
enum graph_status graph_run(const struct graph_spec *spec);

/* Returns whether all plugins exist. Prints an error about a missing plugin. */
bool graph_can_run(void);

/* Return babeltrace2's plugin "ctf", and BlkKin's plugin; NULL: missing. */
const bt_plugin *graph_ctf(void);
const bt_plugin *graph_blkin(void);

/* ---- the reader: the child of `blkin live` that runs the sink -------------------------------- */

#define READER_STATS_MS 500 /* the period in which a child's sink writes its account */

/* Returns the parameters for a child's sink: the configured ones, except the parameters that the
 * service handles itself. NULL: out of memory. */
json_t *reader_params(const struct config *config);

/* Called in the child: gives up privileges and returns the order. Aborts if the bytes are no order.
 */
json_t *reader_begin(const void *bytes, size_t size);

/* ---- the live sessions of a relay daemon ----------------------------------------------------- */

#define LISTED_MAX 96 /* the most sessions in a listing */

struct listed_session {
    char host[256], name[256];
    int64_t viewers, streams;
};

struct listing {
    int count;
    bool has_more; /* the daemon has further sessions */
    struct listed_session sessions[LISTED_MAX];
};

/* Fills an empty listing. url: net://HOST:PORT. Returns false if the daemon does not answer. */
bool listing_ask(const char *url, struct listing *listing);

/* A task that calls listing_ask(). Its order is the url, its result a struct listing. */
extern const struct job listing_job;

/* Returns true if the listing has the session, or has_more. */
bool listing_has(const struct listing *listing, const char *host, const char *session);

#endif
