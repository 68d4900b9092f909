/*
 * `blkin host` as a child of a service that records spans. One that dies is started again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_CHILD_H
#define BLKIN_TOOLS_HOST_CHILD_H

#include "tools/base/child.h"
#include "tools/config/config.h"

#include <jansson.h>

/* Once, before the first child: main() says which job that is. */
void host_child_set_job(const struct job *job);

/* For the job: the service's configuration; what is said is said as by the service. Returns NULL
 * after it has said why. */
struct config *host_child_config(const void *order, size_t size);

struct host_child {
    struct loop *loop; /* NULL: it was never started */
    const struct config *config;
    struct child child;
    struct timer retry;
    int64_t begun_ms;
    unsigned failures; /* one after the other */
    uint64_t died;
    bool is_wanted;
};

/* config: the service's. Does nothing where it says host=no. */
void host_child_start(struct host_child *host, struct loop *loop, const struct config *config);

/* The configuration is another one. */
void host_child_reload(struct host_child *host, const struct config *config);

/* It ends; not killed, as that may be while it records. */
void host_child_stop(struct host_child *host);

/* The same, and waits for it, 1 s at most. */
void host_child_close(struct host_child *host);

/* {"state", "pid", "died"} */
json_t *host_child_json(const struct host_child *host);

#endif
