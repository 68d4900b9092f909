/*
 * The traces of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "service_traces.h"

#include "tools/base/totals.h"

#include "tools/base/say.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* {"TRACE-ID": spans of the service} */
static void service_traces_note_span(json_t *traces, const json_t *span, const char *service)
{
    const char *id = json_string_value(json_object_get(span, "traceId"));
    const char *name =
        json_string_value(json_object_get(json_object_get(span, "localEndpoint"), "serviceName"));
    json_t *spans = id ? json_object_get(traces, id) : NULL;

    if (!id || !name || strcasecmp(name, service) != 0)
        return;
    if (spans)
        (void)json_integer_set(spans, json_integer_value(spans) + 1);
    else if (json_object_size(traces) < SERVICE_TRACES_MAX)
        (void)json_object_set_new(traces, id, json_integer(1));
}

/* One span after the other: all of them may be more than there is memory for. */
static void service_traces_note_spans(json_t *traces, FILE *file, const char *service)
{
    json_t *span;
    int c = getc(file); /* "[" */

    while (c != EOF && (span = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        service_traces_note_span(traces, span, service);
        json_decref(span);
        do /* to the comma, or the end */
            c = getc(file);
        while (c == '\n' || c == ' ');
    }
}

bool service_traces_write(const char *spans, const char *service, const char *to)
{
    FILE *file = fopen(spans, "re");
    json_t *traces = json_object(), *list = json_array(), *json, *count;
    struct error error;
    const char *id;
    bool is_written;

    if (!file) {
        say(BK4055, "cannot open %s: %s", spans, strerror(errno));
        return false;
    }
    service_traces_note_spans(traces, file, service);
    (void)fclose(file);
    json_object_foreach(traces, id, count)(void)
        json_array_append_new(list, json_pack("{ss, sI, s[], s[]}", "id", id, "spans",
                                              json_integer_value(count), "have", "want"));
    json = json_pack("{so}", "traces", list);
    is_written = json_save(json, to, &error);
    if (!is_written)
        say(BK4056, "%s", error.text);
    json_decref(json);
    json_decref(traces);
    return is_written;
}
