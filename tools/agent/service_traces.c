/*
 * The traces of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "service_traces.h"

#include "trace_id.h"

#include <string.h>
#include <strings.h>

bool service_traces_note(void *context, struct span *span)
{
    struct service_traces *traces = context;
    const struct text name = span->endpoint ? span->endpoint->service : (struct text){"", 0};
    char id[TRACE_ID_TEXT];
    json_t *spans;

    if (!*traces->service || name.length != strlen(traces->service) ||
        strncasecmp(name.data, traces->service, name.length) != 0)
        return true;
    if (!traces->spans)
        traces->spans = json_object();
    trace_id_text((struct trace_id){span->trace_id_high, span->trace_id}, id);
    spans = json_object_get(traces->spans, id);
    if (spans)
        (void)json_integer_set(spans, json_integer_value(spans) + 1);
    else if (json_object_size(traces->spans) < SERVICE_TRACES_MAX)
        (void)json_object_set_new(traces->spans, id, json_integer(1));
    return true;
}

json_t *service_traces_json(const struct service_traces *traces)
{
    json_t *list = json_array(), *count;
    const char *id;

    json_object_foreach(traces->spans, id, count)(void)
        json_array_append_new(list, json_pack("{ss, sI, s[], s[]}", "id", id, "spans",
                                              json_integer_value(count), "have", "want"));
    return json_pack("{so}", "traces", list);
}

void service_traces_free(struct service_traces *traces)
{
    json_decref(traces->spans);
}
