/*
 * The traces that have a span of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_TRACES_H
#define BLKIN_TOOLS_SERVICE_TRACES_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"

#include <jansson.h>
#include <stdbool.h>

#define SERVICE_TRACES_MAX 4096

struct service_traces {
    const char *service; /* "": none is looked for */
    json_t *spans;       /* {"TRACE-ID": spans of the service}; NULL: none yet */
};

/* Of each span. Returns true: it is a stage_skip_fn, and nothing is sent. */
bool service_traces_note(void *traces, struct span *span);

/* Writes {"traces": [{"id": ..., "spans": n}, ...]} to the file: up to SERVICE_TRACES_MAX. Returns
 * false with error set. */
bool service_traces_write(const struct service_traces *traces, const char *to, struct error *error);
void service_traces_free(struct service_traces *traces);

#endif
