/* Runs `blkin host` as a child of a service that records spans, and restarts it when it dies.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_CHILD_H
#define BLKIN_TOOLS_HOST_CHILD_H

#include "tools/base/child.h"
#include "tools/config/config.h"

#include <jansson.h>

/* main() sets the job once, before the first child. */
void host_child_set_job(const struct job *job);

/* For the job: reads the service's configuration from the order, and logs with the service's name.
 * Returns NULL after logging the reason. */
struct config *host_child_config(const void *order, size_t size);

struct host_child {
    struct loop *loop; /* NULL: never started */
    const struct config *config;
    struct child child;
    struct timer retry;
    int64_t begun_ms;
    unsigned failures; /* in a row */
    uint64_t died;
    bool is_wanted;
};

/* config: of the service. Does nothing with host=no. */
void host_child_start(struct host_child *host, struct loop *loop, const struct config *config);

/* Takes a new configuration. */
void host_child_reload(struct host_child *host, const struct config *config);

/* Sends SIGTERM, not SIGKILL, as the child may be recording. */
void host_child_stop(struct host_child *host);

/* The same, and waits for the end, 1 s at most. */
void host_child_close(struct host_child *host);

/* Returns {"state", "pid", "died"}. */
json_t *host_child_json(const struct host_child *host);

#endif
