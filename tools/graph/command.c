/*
 * blkin graph: who calls whom.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/trace/options.h"
#include "tools/trace/summary.h"

#include <getopt.h>

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

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_DOT, FORMAT_JSON };

static const char *const formats[] = {"text", "svg", "dot", "json", NULL};

struct options {
    unsigned format;
    size_t limit;
    size_t width;
};

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
    const struct view_option list[] = {
        {"format", VIEW_CHOICE, 'f', .value = &options.format, .choices = formats},
        {"limit", VIEW_NUMBER, 'n', .value = &options.limit, .min = 1, .max = LIMIT_MAX},
        VIEW_WIDTH(&options.width),
        VIEW_ONLY_ASCII,
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         1,     1,    "one FILE, FOLDER or URL"};
    int status = view_options(argc, argv, &command);
    struct summary summary;
    struct landscape landscape = {.services = NULL};

    if (status >= 0)
        return status;
    status = 1;
    if (summary_load(argv[optind], &summary)) {
        const struct graph_period period = {summary.seconds, summary.spans, summary.traces_count};

        if (landscape_make(&landscape, summary.statistics, options.limit) &&
            show(&options, &landscape, &period))
            status = 0;
        else
            fprintf(stderr, "%s: out of memory\n", argv[0]);
    }
    landscape_destroy(&landscape);
    summary_free(&summary);
    return output_flush(argv[0], status);
}
