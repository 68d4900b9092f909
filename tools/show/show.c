/*
 * blkin show: prints a trace as a timeline, or lists the traces of a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include "draw.h"
#include "perfetto.h"
#include "tools/base/text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: blkin show [OPTION]... FILE|FOLDER|URL [TRACE-ID]\n"
    "\n"
    "Prints a trace as a timeline: every span below its parent, with service, name,\n"
    "start, duration and a bar; \"!\" marks an error. The last line names the span of\n"
    "the longest self time: its duration without the times in which a child was\n"
    "under way. Where spans have usage, columns tell their threads' times: on a CPU,\n"
    "waiting for one, blocked; and the last line, which of them it was.\n"
    "\n"
    "  FILE      Zipkin v2 JSON, as of the sink with endpoint=\"file:PATH\"; -: stdin\n"
    "  URL       the same from a server, as http://localhost:9411/api/v2/trace/ID, or\n"
    "            the address of a trace's page in Zipkin's web interface\n"
    "  FOLDER    a trace as LTTng recorded it; babeltrace2 and the sink read it\n"
    "  TRACE-ID  which trace, if there are several; its first digits will do.\n"
    "            Without it the one that took longest is shown\n"
    "\n"
    "  -a, --annotations  also print annotations, tags and endpoints\n"
    "  -l, --list         list the traces, one line each\n"
    "  -w, --width=N      use lines of N columns (default: the terminal's, or 80)\n"
    "      --ascii        draw with ASCII characters, whatever the locale can do\n"
    "      --format=perfetto  write it, or all traces, for Perfetto (ui.perfetto.dev)\n"
    "  -h, --help         print this\n"
    "\n"
    "Exit status: 0 printed; 1 cannot be read, or has no such trace; 2 wrong usage.\n";

struct options {
    bool annotations;
    bool list;
    bool is_perfetto;
    size_t width;
    const char *source;
    const char *id; /* NULL: the slowest one */
};

static bool read_format(const char *command, const char *text, bool *is_perfetto)
{
    *is_perfetto = strcmp(text, "perfetto") == 0;
    if (*is_perfetto || strcmp(text, "text") == 0)
        return true;
    fprintf(stderr, "%s: --format: expected text or perfetto, got \"%s\"\n", command, text);
    return false;
}

/* The exit status if there is nothing to do after this, or -1. */
static int read_options(int argc, char *argv[], struct options *options)
{
    static const struct option names[] = {
        {"annotations", no_argument, NULL, 'a'},
        {"list", no_argument, NULL, 'l'},
        {"width", required_argument, NULL, 'w'},
        {"ascii", no_argument, NULL, 'A'},
        {"format", required_argument, NULL, 'F'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "alw:h", names, NULL)) != -1) {
        switch (option) {
        case 'a':
            options->annotations = true;
            break;
        case 'l':
            options->list = true;
            break;
        case 'w':
            if (!read_width(argv[0], optarg, &options->width))
                return 2;
            break;
        case 'A':
            utf8_off();
            break;
        case 'F':
            if (!read_format(argv[0], optarg, &options->is_perfetto))
                return 2;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs("blkin show --help prints the usage\n", stderr);
            return 2;
        }
    }
    if (argc - optind < 1 || argc - optind > 2) {
        fputs("blkin show: expected FILE|FOLDER|URL [TRACE-ID]; --help prints the usage\n", stderr);
        return 2;
    }
    options->source = argv[optind];
    options->id = argv[optind + 1];
    return -1;
}

static int no_memory(void)
{
    fputs("blkin show: out of memory\n", stderr);
    return 1;
}

/* Out of memory: returns false. */
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

/* By the whole id, or else by its first digits. Reports by itself. */
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

static int show_trace(const struct trace_list *traces, const struct options *options,
                      struct names *names, struct trace_model *model)
{
    const struct trace *trace =
        options->id ? find(traces, options->id, options->source) : slowest(traces);

    if (!trace)
        return 1;
    if (!trace_link(trace, names, model))
        return no_memory();
    draw(trace, model, options->width ? options->width : screen().width, options->annotations);
    if (!options->id && traces->count > 1)
        printf("\nThis is the slowest of %zu traces (--list lists them).\n", traces->count);
    return 0;
}

/* The one that was asked for, or all. */
static int show_for_perfetto(const struct trace_list *traces, const struct options *options)
{
    const struct trace *trace = options->id ? find(traces, options->id, options->source) : NULL;
    size_t left_out;

    if (options->id && !trace)
        return 1;
    if (!perfetto(trace ? trace : traces->traces, trace ? 1 : traces->count, options->source,
                  &left_out))
        return no_memory();
    if (left_out)
        fprintf(stderr, "blkin show: %zu span%s without a start: left out\n", left_out,
                left_out == 1 ? "" : "s");
    return 0;
}

int show(int argc, char *argv[])
{
    struct options options = {0};
    struct span_list spans;
    struct trace_list traces = {0};
    struct trace_model model = {0};
    struct names *names = NULL;
    int status = read_options(argc, argv, &options);

    if (status >= 0)
        return status;
    status = 1;
    if (spans_load(options.source, &spans)) {
        names = names_of_file();
        if (!names || !traces_sort(&spans, &traces))
            status = no_memory();
        else if (options.list)
            status = list(&traces, names, &model) ? 0 : no_memory();
        else if (options.is_perfetto)
            status = show_for_perfetto(&traces, &options);
        else
            status = show_trace(&traces, &options, names, &model);
    }
    trace_model_destroy(&model);
    names_free(names);
    traces_free(&traces);
    spans_free(&spans);
    if (fflush(stdout) || ferror(stdout)) {
        perror("blkin show: cannot write");
        status = 1;
    }
    return status;
}
