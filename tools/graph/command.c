/*
 * blkin graph: who calls whom.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "tools/base/text.h"
#include "tools/trace/summary.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     200 /* a picture of more says nothing */

static const char usage[] =
    "usage: blkin graph [OPTION]... FILE|FOLDER|URL\n"
    "\n"
    "Shows which service calls which: how often, how often it fails, and how long it\n"
    "takes; and where the time goes, by services. For a page with it: blkin report.\n"
    "\n"
    "  FILE    Zipkin v2 JSON, as of the sink with endpoint=\"file:PATH\"; -: stdin\n"
    "  URL     the same from a server: http://localhost:9411/api/v2/traces?limit=1000\n"
    "          of either: also the statistics of \"blkin work --root\"\n"
    "  FOLDER  a trace as LTTng recorded it; babeltrace2 and the sink read it\n"
    "\n"
    "  -f, --format=FORMAT  text (the default), svg, dot (for graphviz), or json\n"
    "  -n, --limit=N        the N services of most spans, and all others as one\n"
    "                       [1 to 200, default: 50]\n"
    "  -w, --width=N        lines of N columns (default: the terminal's, or 80)\n"
    "      --ascii          only ASCII characters\n"
    "  -h, --help           print this\n"
    "\n"
    "Exit status: 0 shown; 1 cannot be read; 2 wrong usage.\n";

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_DOT, FORMAT_JSON, FORMATS };

struct options {
    enum format format;
    size_t limit;
    size_t width;
    const char *source;
};

static bool read_format(const char *command, const char *text, enum format *format)
{
    static const char *const names[] = {"text", "svg", "dot", "json"};

    for (int i = 0; i < FORMATS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *format = (enum format)i;
            return true;
        }
    }
    fprintf(stderr, "%s: --format: expected text, svg, dot or json, got \"%s\"\n", command, text);
    return false;
}

static bool read_limit(const char *command, const char *text, size_t *limit)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);

    if (*end || value < 1 || value > LIMIT_MAX) {
        fprintf(stderr, "%s: --limit: expected a number of 1 to %d, got \"%s\"\n", command,
                LIMIT_MAX, text);
        return false;
    }
    *limit = value;
    return true;
}

/* Returns -1 if it is well. */
static int read_option(int option, const char *command, struct options *options)
{
    switch (option) {
    case 'f':
        return read_format(command, optarg, &options->format) ? -1 : 2;
    case 'n':
        return read_limit(command, optarg, &options->limit) ? -1 : 2;
    case 'w':
        return read_width(command, optarg, &options->width) ? -1 : 2;
    case 'A':
        utf8_off();
        return -1;
    case 'h':
        fputs(usage, stdout);
        return 0;
    default:
        fprintf(stderr, "%s --help prints the usage\n", command);
        return 2;
    }
}

/* The exit status if there is nothing to do after this, or -1. */
static int read_options(int argc, char *argv[], struct options *options)
{
    static const struct option names[] = {
        {"format", required_argument, NULL, 'f'}, {"limit", required_argument, NULL, 'n'},
        {"width", required_argument, NULL, 'w'},  {"ascii", no_argument, NULL, 'A'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "f:n:w:h", names, NULL)) != -1) {
        const int status = read_option(option, argv[0], options);

        if (status >= 0)
            return status;
    }
    if (argc - optind != 1) {
        fprintf(stderr, "%s: expected one FILE, FOLDER or URL; --help prints the usage\n", argv[0]);
        return 2;
    }
    options->source = argv[optind];
    return -1;
}

static bool show(const struct options *options, const struct landscape *landscape,
                 const struct graph_period *period)
{
    switch (options->format) {
    case FORMAT_SVG:
        return graph_svg(stdout, landscape, period, false);
    case FORMAT_DOT:
        graph_dot(landscape, period);
        return true;
    case FORMAT_JSON:
        return graph_json(landscape, period);
    default:
        return graph_text(landscape, period, options->width ? options->width : screen().width);
    }
}

int graph_command(int argc, char *argv[])
{
    struct options options = {.limit = LIMIT_DEFAULT};
    int status = read_options(argc, argv, &options);
    struct summary summary;
    struct landscape landscape = {.services = NULL};

    if (status >= 0)
        return status;
    status = 1;
    if (summary_load(options.source, &summary)) {
        const struct graph_period period = {summary.seconds, summary.spans, summary.traces_count};

        if (landscape_make(&landscape, summary.statistics, options.limit) &&
            show(&options, &landscape, &period))
            status = 0;
        else
            fprintf(stderr, "%s: out of memory\n", argv[0]);
    }
    landscape_destroy(&landscape);
    summary_free(&summary);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: ", argv[0]);
        perror("cannot write");
        status = 1;
    }
    return status;
}
