/*
 * The traces that have a span of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_TRACES_H
#define BLKIN_TOOLS_SERVICE_TRACES_H

#include "babeltrace-plugin/spans/span.h"

#include <jansson.h>
#include <stdbool.h>

#define SERVICE_TRACES_MAX 4096

struct service_traces {
    const char *service; /* "": none is looked for */
    json_t *spans;       /* {"TRACE-ID": spans of the service}; NULL: none yet */
};

/* A stage_skip_fn that counts each span and returns true: no span is sent. */
bool service_traces_note(void *traces, struct span *span);

/* {"traces": [{"id": ..., "spans": n}, ...]}: up to SERVICE_TRACES_MAX. NULL: out of memory. */
json_t *service_traces_json(const struct service_traces *traces);
void service_traces_free(struct service_traces *traces);

#endif
