/*
 * Loaded spans sorted into traces, and a trace for the model.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACES_H
#define BLKIN_TOOLS_TRACES_H

#include "babeltrace-plugin/model/model.h"
#include "babeltrace-plugin/model/names.h"
#include "load.h"

/* Times in ns. */
struct trace {
    const char *id;
    const struct json_span **spans; /* by time; those without a time last */
    size_t count;
    int64_t start_ns; /* of the first span that has a time; 0: none has */
    int64_t end_ns;
    size_t errors;
};

struct trace_list {
    struct trace *traces; /* by time */
    size_t count;
    const struct json_span **spans; /* of all of them */
};

/* Out of memory: returns false. */
bool traces_sort(const struct span_list *spans, struct trace_list *list);
void traces_free(struct trace_list *list);

static inline const struct json_span *span_of(const struct trace_model *model, uint32_t node)
{
    return model->spans[node].of;
}

/* Makes it the model's, linked. Out of memory: returns false. */
bool trace_link(const struct trace *trace, struct names *names, struct trace_model *model);

/* The server's span, if the node's own time is that of the way to it and back; else TRACE_NONE. */
uint32_t trace_other_side(const struct trace_model *model, uint32_t node);

/* "store 10.0.0.1:9000", of a member of a span; false: it has none. */
bool trace_endpoint(const struct json_span *span, const char *member, char text[256]);

/* How many different services have spans in it. */
size_t trace_services(const struct trace *trace);

/* Names without a limit, as a file's are all in memory anyway. Returns NULL when out of memory. */
struct names *names_of_file(void);

#endif
