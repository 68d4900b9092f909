/*
 * Runs babeltrace2's graph, from recorded traces or a live session to sink.blkin.zipkin, in this
 * process. A service runs it in a child, as babeltrace2 aborts on some corrupted packets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_READER_GRAPH_H
#define BLKIN_READER_GRAPH_H

#include "tools/base/child.h"
#include "tools/base/json.h"
#include "tools/config/config.h"

#include <babeltrace2/babeltrace.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_spec {
    const char *live_url;      /* net://HOST:PORT/host/NAME/SESSION; NULL: recorded traces */
    const char *const *traces; /* folders with a file "metadata" each; ends with NULL */
    const json_t *sink_params; /* {"endpoint": "http://...", "batch-spans": 100, ...} */
    long retry_us;             /* the pause when a live session has no events */
    bt_logging_level level;
};

enum graph_status {                   /* the exit statuses of babeltrace2(1) */
                    GRAPH_ENDED = 0,  /* all delivered */
                    GRAPH_FAILED = 1, /* the reason is on the standard error */
                    GRAPH_INTERRUPTED =
                        2 /* by SIGINT or SIGTERM, after delivery of all events read */
};

/*
 * Runs to the end of the traces or the session, or to SIGINT or SIGTERM. One signal is enough, also
 * while the relay daemon hangs. Looks for the plugin in $BABELTRACE_PLUGIN_PATH, then in the
 * installed folder.
 */
enum graph_status graph_run(const struct graph_spec *spec);

/* Returns whether all plugins exist. Logs a missing one. */
bool graph_can_run(void);

/* Return babeltrace2's plugin "ctf", and BlkKin's plugin; NULL: missing. */
const bt_plugin *graph_ctf(void);
const bt_plugin *graph_blkin(void);

/* ---- common parts of the services' children that run the sink -------------------------------- */

/* Returns the sink's parameters of the configuration, without those that the service handles. NULL:
 * out of memory. */
json_t *reader_params(const struct config *config);

/* Refuses file:PATH as endpoint with error set: a sink overwrites no file, so only the first of a
 * service's readers could write it. */
bool reader_endpoint_fits(const struct config *config, struct error *error);

/* For the child: gives up privileges and returns the order. Aborts if the bytes are no order. */
json_t *reader_begin(const void *bytes, size_t size);

/* ---- the live sessions of a relay daemon ----------------------------------------------------- */

#define LISTED_MAX 96 /* the most sessions in a listing */

struct listed_session {
    char host[256], name[256];
    int64_t viewers, streams;
};

struct listing {
    int count;
    bool has_more;
    struct listed_session sessions[LISTED_MAX];
};

/* url: net://HOST:PORT. listing is empty. Returns false if the daemon does not answer. */
bool listing_ask(const char *url, struct listing *listing);

/* The same as a task_fn. order: the url; result: a struct listing */
extern const struct job listing_job;

/* Returns true also if the listing was cut. */
bool listing_has(const struct listing *listing, const char *host, const char *session);

#endif
