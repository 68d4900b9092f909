/* blkin show --around: the spans of all programs on a host, side by side.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include "tools/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_DIGITS 16

/* Returns the host by the span's tag; NULL: none. */
static const char *around_host(const struct json_span *span)
{
    return json_string_value(json_object_get(json_object_get(span->json, "tags"), "lttng.host"));
}

static bool around_is_known(const struct json_span *span)
{
    return around_host(span) && span->start_ns;
}

/* Finds the span whose id begins with the text. Both halves of a request have the same id and count
 * as one: the first half with a host and a time. Returns NULL for several ids; *matches is their
 * number. */
static const struct json_span *around_find(const struct trace *traces, size_t count, const char *id,
                                           size_t *matches)
{
    const struct json_span *found = NULL;

    *matches = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < traces[i].count; k++) {
            const struct json_span *span = traces[i].spans[k];
            const bool is_half = found && strcmp(span->trace_id, found->trace_id) == 0 &&
                                 strcmp(span->id, found->id) == 0;

            if (strncasecmp(span->id, id, strlen(id)) != 0)
                continue;
            *matches += !is_half;
            if (!is_half || !around_is_known(found))
                found = span;
        }
    }
    return *matches == 1 ? found : NULL;
}

static const struct json_span *around_find_known(const struct trace *traces, size_t count,
                                                 const char *id, const char *source)
{
    const size_t digits = strspn(id, "0123456789abcdefABCDEF");
    const struct json_span *found;
    size_t matches;

    if (digits == 0 || digits > ID_DIGITS || id[digits]) {
        fprintf(stderr,
                "blkin show: --around: \"%s\" is not a span id: expected 1 to %d hexadecimal "
                "digits\n",
                id, ID_DIGITS);
        return NULL;
    }
    found = around_find(traces, count, id, &matches);
    if (found && around_is_known(found))
        return found;
    if (found)
        fprintf(
            stderr,
            "blkin show: %s: span %s has no %s, so that --around cannot find what ran beside it\n",
            source, found->id, around_host(found) ? "start" : "tag lttng.host");
    else if (matches)
        fprintf(stderr,
                "blkin show: %s: the ids of %zu spans begin with %s: give more digits, or their "
                "TRACE-ID\n",
                source, matches, id);
    else
        fprintf(stderr, "blkin show: %s: no span %s in it (-a prints the ids)\n", source, id);
    return NULL;
}

static int around_by_start(const void *a, const void *b)
{
    const struct json_span *left = *(const struct json_span *const *)a;
    const struct json_span *right = *(const struct json_span *const *)b;

    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    return (left > right) - (left < right);
}

static void around_put_name(const struct json_span *span)
{
    put(span->service, SIZE_MAX);
    fputs(": ", stdout);
    put(span->name, SIZE_MAX);
}

static void around_put(const struct json_span *const *spans, size_t count,
                       const struct json_span *with)
{
    fputs("on ", stdout);
    put(around_host(with), SIZE_MAX);
    fputs(", while ", stdout);
    around_put_name(with);
    printf(" took %s:\n\n%12s %10s  %-32s  %s\n", time_text(with->duration_ns / 1000).text, "start",
           "duration", "trace", "service: span");
    for (size_t i = 0; i < count; i++) {
        printf("%9.0f us %10s  %-32s  ", (double)(spans[i]->start_ns - with->start_ns) / 1000,
               time_text(spans[i]->duration_ns / 1000).text, spans[i]->trace_id);
        around_put_name(spans[i]);
        puts(spans[i] == with ? "  <" : "");
    }
}

int show_around(const struct trace_list *traces, const struct trace *within, const char *id,
                const char *source)
{
    const struct json_span *with =
        within ? around_find_known(within, 1, id, source)
               : around_find_known(traces->traces, traces->count, id, source);
    const struct json_span **spans;
    size_t all = 0, count = 0;

    if (!with)
        return 1;
    for (size_t i = 0; i < traces->count; i++)
        all += traces->traces[i].count;
    spans = calloc(all, sizeof(*spans));
    if (!spans) {
        fputs("blkin show: out of memory\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < all; i++) {
        const struct json_span *span = traces->spans[i];

        if (around_is_known(span) && span->start_ns <= with->start_ns + with->duration_ns &&
            span->start_ns + span->duration_ns >= with->start_ns &&
            strcmp(around_host(span), around_host(with)) == 0)
            spans[count++] = span;
    }
    qsort(spans, count, sizeof(*spans), around_by_start);
    around_put(spans, count, with);
    free(spans);
    return 0;
}
