/* SPDX-License-Identifier: BSD-2-Clause */
#include "show.h"

#include "tools/base/commands.h"
#include "tools/base/control.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/config/config.h"
#include "tools/trace/options.h"
#include "tools/trace/summary.h"

#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
#include "tools/show/usage.txt.inc"
    ;

struct show_options {
    bool annotations;
    bool list;
    size_t width;
    const char *source;
    const char *around; /* a span's id; NULL: not given */
    const char *id;     /* NULL: the slowest trace */
};

static int no_memory(void)
{
    fputs("blkin show: out of memory\n", stderr);
    return 1;
}

/* Prints a line for each trace. Returns false when out of memory. */
static bool list_traces(const struct trace_list *traces, struct names *names,
                        struct trace_model *model)
{
    printf("%-32s %6s %6s %10s  %-26s  %s\n", "trace", "spans", "errors", "duration", "start",
           "root span");
    for (size_t i = 0; i < traces->count; i++) {
        const struct trace *trace = &traces->traces[i];
        const struct json_span *root;

        if (!trace_link(trace, names, model))
            return false;
        root = span_of(model, model->first_top);
        printf("%-32s %6zu %6zu %10s  %-26s  ", trace->id, trace->count, trace->errors,
               trace->start_ns ? time_text((trace->end_ns - trace->start_ns) / 1000).text : "?",
               date_text(trace->start_ns, 6).text);
        put_text(root->service, SIZE_MAX);
        fputs(root->service[0] ? ": " : "", stdout);
        put_text(root->name, SIZE_MAX);
        putchar('\n');
    }
    return true;
}

static struct trace *slowest_trace(const struct trace_list *traces)
{
    struct trace *found = traces->traces;

    for (size_t i = 1; i < traces->count; i++) {
        struct trace *trace = &traces->traces[i];

        if (trace->end_ns - trace->start_ns > found->end_ns - found->start_ns)
            found = trace;
    }
    return found;
}

/* Finds a trace by its id, or by the first digits of its id. Returns NULL after printing an error.
 */
static struct trace *find_trace(const struct trace_list *traces, const char *given,
                                const char *source)
{
    struct trace *found = NULL;
    size_t matches = 0;
    char id[33];

    if (!id_parse(given, id)) {
        fprintf(stderr,
                "blkin show: \"%s\" is not a trace id: expected 1 to 32 hexadecimal digits\n",
                given);
        return NULL;
    }
    for (size_t i = 0; i < traces->count; i++) {
        struct trace *trace = &traces->traces[i];

        if (strcmp(trace->id, id) == 0)
            return trace;
        if (strncasecmp(trace->id, given, strlen(given)) == 0) {
            found = trace;
            matches++;
        }
    }
    if (matches == 1)
        return found;
    if (matches)
        fprintf(stderr, "blkin show: %s: the ids of %zu traces begin with %s: give more digits\n",
                source, matches, given);
    else
        fprintf(stderr, "blkin show: %s: no trace %s among its %zu (--list lists them)\n", source,
                given, traces->count);
    return NULL;
}

/* ---- --around: the spans of all programs on a host, side by side ----------------------------- */

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
 * as one span: the first half with a host and a time. Sets *matches to the number of different ids.
 * Returns NULL unless that number is 1. */
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

/* Finds a span with a host and a start. Returns NULL after printing an error. */
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
        fprintf(stderr,
                "blkin show: %s: span %s has no %s, so --around cannot find the spans of the same "
                "time\n",
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
    put_text(span->service, SIZE_MAX);
    fputs(": ", stdout);
    put_text(span->name, SIZE_MAX);
}

static void around_put(const struct json_span *const *spans, size_t count,
                       const struct json_span *with)
{
    fputs("on ", stdout);
    put_text(around_host(with), SIZE_MAX);
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

/* Prints all spans that were open on the same host while one span was open. id: the id of this
 * span, or its first digits; within: the trace of this span; NULL: any trace. Returns the exit
 * status. */
static int show_around(const struct trace_list *traces, const struct trace *within, const char *id,
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
    if (!spans)
        return no_memory();
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

/* ---- the formats ----------------------------------------------------------------------------- */

/* Prints a trace; trace NULL: the slowest trace. Returns the exit status. */
static int show_trace(const struct trace_list *traces, const struct trace *trace,
                      const struct show_options *options, struct names *names,
                      struct trace_model *model)
{
    if (!trace)
        trace = slowest_trace(traces);
    if (!trace_link(trace, names, model))
        return no_memory();
    draw(trace, model, options->width ? options->width : screen().width, options->annotations);
    if (!options->id && traces->count > 1)
        printf("\nThis is the slowest of %zu traces (--list lists them).\n", traces->count);
    return 0;
}

#define SHOW_AGENT "agent:"

/* Loads the spans that wait in the agent's spool. Returns false after printing an error. */
static bool show_load_waiting(const char *folder, struct summary *summary)
{
    struct buffer bytes = {.data = NULL};
    struct error error = {"agent: out of memory"};
    json_t *answer = control_ask(folder, "agent", "waiting", &error);
    const json_t *spans = json_object_get(answer, "spans");
    bool is_done = false;

    if (spans && json_array_size(spans) == 0)
        error_set(&error, "agent: no span waits in the spool of the `blkin agent` of \"%s\"",
                  folder);
    else if (spans)
        bytes.data = json_dumps(spans, 0);
    if (bytes.data) {
        bytes.length = strlen(bytes.data);
        is_done = summary_load_bytes(&bytes, SHOW_AGENT, summary);
    } else {
        fprintf(stderr, "blkin show: %s\n", error.text);
    }
    free(bytes.data);
    json_decref(answer);
    return is_done;
}

static bool show_load(const char *source, struct summary *summary)
{
    const struct config_request request = {.section = "agent", .usage = "", .is_view = true};
    char name[] = "blkin show", *flags[] = {name, NULL};
    struct config *config;
    int status;
    bool is_done;

    if (strncmp(source, SHOW_AGENT, strlen(SHOW_AGENT)) != 0)
        return summary_load(source, false, summary);
    *summary = (struct summary){.names = NULL};
    if (source[strlen(SHOW_AGENT)])
        return show_load_waiting(source + strlen(SHOW_AGENT), summary);
    config = config_read(&request, 1, flags, &status);
    is_done = config && show_load_waiting(config_text(config, "runtime-dir"), summary);
    config_free(config);
    return is_done;
}

int show_command(int argc, char *argv[])
{
    struct show_options options = {0};
    const struct view_option all[] = {
        {"annotations", VIEW_FLAG, 'a', .value = &options.annotations},
        {"list", VIEW_FLAG, 'l', .value = &options.list},
        VIEW_WIDTH(&options.width),
        VIEW_ONLY_ASCII,
        {"around", VIEW_TEXT, 0, .value = &options.around},
    };
    const struct view_command command = {usage, all, sizeof(all) / sizeof(all[0]),
                                         1,     2,   "FILE|FOLDER|URL|agent: [TRACE-ID]"};
    struct summary summary;
    const struct trace *trace = NULL;
    int status = view_options(argc, argv, &command);

    if (status >= 0)
        return status;
    if (options.list && options.around) {
        fputs("blkin show: expected --list or --around, not both\n", stderr);
        return 2;
    }
    options.source = argv[optind];
    options.id = argv[optind + 1];
    status = 1;
    if (show_load(options.source, &summary)) {
        if (options.list)
            status = list_traces(&summary.traces, summary.names, &summary.model) ? 0 : no_memory();
        else if (options.id && !(trace = find_trace(&summary.traces, options.id, options.source)))
            status = 1;
        else if (options.around)
            status = show_around(&summary.traces, trace, options.around, options.source);
        else
            status = show_trace(&summary.traces, trace, &options, summary.names, &summary.model);
    }
    status = summary_end(&summary, status);
    return output_flush(argv[0], status);
}
