/*
 * blkin show: prints a trace as a timeline, or lists the traces of a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/trace/options.h"
#include "tools/trace/summary.h"

#include <unistd.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
#include "tools/show/usage.txt.inc"
    ;

static const char *const formats[] = {"text", "perfetto", NULL};

struct show_options {
    bool annotations;
    bool list;
    unsigned is_perfetto; /* the index in formats */
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

/* Returns false when out of memory. */
static bool list(const struct trace_list *traces, struct names *names, struct trace_model *model)
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
        put(root->service, SIZE_MAX);
        fputs(root->service[0] ? ": " : "", stdout);
        put(root->name, SIZE_MAX);
        putchar('\n');
    }
    return true;
}

static struct trace *slowest(const struct trace_list *traces)
{
    struct trace *found = traces->traces;

    for (size_t i = 1; i < traces->count; i++) {
        struct trace *trace = &traces->traces[i];

        if (trace->end_ns - trace->start_ns > found->end_ns - found->start_ns)
            found = trace;
    }
    return found;
}

/* Finds a trace by its id or the first digits. Prints an error and returns NULL. */
static struct trace *find(const struct trace_list *traces, const char *given, const char *source)
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

static int show_trace(const struct trace_list *traces, const struct trace *trace,
                      const struct show_options *options, struct names *names,
                      struct trace_model *model)
{
    if (!trace)
        trace = slowest(traces);
    if (!trace_link(trace, names, model))
        return no_memory();
    draw(trace, model, options->width ? options->width : screen().width, options->annotations);
    if (!options->id && traces->count > 1)
        printf("\nThis is the slowest of %zu traces (--list lists them).\n", traces->count);
    return 0;
}

/* Writes the given trace, or all traces. */
static int show_for_perfetto(const struct trace_list *traces, const struct trace *trace,
                             const char *source)
{
    size_t left_out;

    if (!perfetto(trace ? trace : traces->traces, trace ? 1 : traces->count, source, &left_out))
        return no_memory();
    if (left_out)
        fprintf(stderr, "blkin show: %zu span%s without a start: left out\n", left_out,
                left_out == 1 ? "" : "s");
    return 0;
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
        {"format", VIEW_CHOICE, 0, .value = &options.is_perfetto, .choices = formats},
    };
    const struct view_command command = {usage, all, sizeof(all) / sizeof(all[0]),
                                         1,     2,   "FILE|FOLDER|URL [TRACE-ID]"};
    struct summary summary;
    const struct trace *trace = NULL;
    int status = view_options(argc, argv, &command);

    if (status >= 0)
        return status;
    if (options.list + (options.around != NULL) + (options.is_perfetto != 0) > 1) {
        fputs("blkin show: expected one of --list, --around and --format=perfetto\n", stderr);
        return 2;
    }
    options.source = argv[optind];
    options.id = argv[optind + 1];
    status = 1;
    if (summary_load(options.source, false, &summary)) {
        if (options.list)
            status = list(&summary.traces, summary.names, &summary.model) ? 0 : no_memory();
        else if (options.id && !(trace = find(&summary.traces, options.id, options.source)))
            status = 1;
        else if (options.around)
            status = show_around(&summary.traces, trace, options.around, options.source);
        else if (options.is_perfetto)
            status = show_for_perfetto(&summary.traces, trace, options.source);
        else
            status = show_trace(&summary.traces, trace, &options, summary.names, &summary.model);
    }
    status = summary_end(&summary, status);
    return output_flush(argv[0], status);
}
