/*
 * blkin show --around: programs whose spans no id joins, side by side.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "around.h"

#include "tools/base/text.h"

#include <stdio.h>
#include <string.h>

/* NULL: no tag tells where it was. */
static const char *around_host(const struct json_span *span)
{
    return json_string_value(json_object_get(json_object_get(span->json, "tags"), "lttng.host"));
}

static const struct json_span *around_find(const struct trace_list *traces, const char *id,
                                           const char *source)
{
    const struct json_span *found = NULL;
    size_t matches = 0;

    for (size_t i = 0; i < traces->count; i++) {
        for (size_t k = 0; k < traces->traces[i].count; k++) {
            const struct json_span *span = traces->traces[i].spans[k];

            if (strncasecmp(span->id, id, strlen(id)) == 0 && id[0]) {
                found = span;
                matches++;
            }
        }
    }
    if (matches == 1 && around_host(found))
        return found;
    if (matches == 1)
        fprintf(stderr, "blkin show: %s: span %s has no tag lttng.host\n", source, id);
    else
        fprintf(stderr, "blkin show: %s: %zu spans have ids that begin with \"%s\", expected one\n",
                source, matches, id);
    return NULL;
}

static bool around_overlaps(const struct json_span *span, const struct json_span *with)
{
    const char *host = around_host(span);

    return span->start_ns && span->start_ns <= with->start_ns + with->duration_ns &&
           span->start_ns + span->duration_ns >= with->start_ns && host &&
           strcmp(host, around_host(with)) == 0;
}

int show_around(const struct trace_list *traces, const char *id, const char *source)
{
    const struct json_span *with = around_find(traces, id, source);

    if (!with)
        return 1;
    printf("on %s, while %s: %s took %s:\n\n%12s %10s  %-32s  %s\n", around_host(with),
           with->service, with->name, time_text(with->duration_ns / 1000).text, "start", "duration",
           "trace", "service: span");
    for (size_t i = 0; i < traces->count; i++) {
        for (size_t k = 0; k < traces->traces[i].count; k++) {
            const struct json_span *span = traces->traces[i].spans[k];

            if (!around_overlaps(span, with))
                continue;
            printf("%9.0f us %10s  %-32s  ", (double)(span->start_ns - with->start_ns) / 1000,
                   time_text(span->duration_ns / 1000).text, span->trace_id);
            put(span->service, SIZE_MAX);
            fputs(": ", stdout);
            put(span->name, SIZE_MAX);
            puts(span == with ? "  <" : "");
        }
    }
    return 0;
}
