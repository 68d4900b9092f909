/* Sorts loaded spans into traces, and passes a trace to the model.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACES_H
#define BLKIN_TOOLS_TRACES_H

#include "babeltrace-plugin/model/model.h"
#include "load.h"

/* Times in ns. */
struct trace {
    const char *id;
    const struct json_span **spans; /* by time; spans without a time last */
    size_t count;
    int64_t start_ns; /* of the first span with a time; 0: unknown */
    int64_t end_ns;
    size_t errors;
};

struct trace_list {
    struct trace *traces; /* by time */
    size_t count;
    const struct json_span **spans; /* of all traces */
};

/* Returns false when out of memory. */
bool traces_sort(const struct span_list *spans, struct trace_list *list);
void traces_free(struct trace_list *list);

static inline const struct json_span *span_of(const struct trace_model *model, uint32_t node)
{
    return model->spans[node].of;
}

/* Loads the trace into the model and links it. Returns false when out of memory. */
bool trace_link(const struct trace *trace, struct names *names, struct trace_model *model);

/* Returns the server's span if the node's self time is the time of the network; else TRACE_NONE. */
uint32_t trace_other_side(const struct trace_model *model, uint32_t node);

/* Formats a member of a span as "store 10.0.0.1:9000". Returns false if the span has none. */
bool trace_endpoint(const struct json_span *span, const char *member, char text[256]);

/* Returns the number of different services in the trace. */
size_t trace_services(const struct trace *trace);

/* Returns names without a limit, as a file is in memory as a whole; NULL: out of memory. */
struct names *names_of_file(void);

#endif
