/* blkin graph: the calls between services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/trace/options.h"
#include "tools/trace/summary.h"

#include <getopt.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     200 /* larger pictures are unreadable */

static const char usage[] =
#include "tools/graph/usage.txt.inc"
    ;

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_DOT, FORMAT_JSON };

static const char *const formats[] = {"text", "svg", "dot", "json", NULL};

struct graph_options {
    unsigned format;
    size_t limit;
    size_t width;
};

static bool show_svg(const char *command, const struct landscape *landscape)
{
    switch (graph_draw(stdout, landscape, false)) {
    case GRAPH_DRAWN:
        return true;
    case GRAPH_WITHOUT_DOT:
        fprintf(stderr,
                "%s: --format=svg needs the command \"dot\", which is not on the PATH: install the "
                "package graphviz\n",
                command);
        return false;
    default:
        fprintf(stderr, "%s: \"dot -Tsvg\" did not draw the graph; --format=dot shows its input\n",
                command);
        return false;
    }
}

static bool show(const char *command, const struct graph_options *options,
                 const struct landscape *landscape)
{
    bool is_done;

    switch (options->format) {
    case FORMAT_SVG:
        return show_svg(command, landscape);
    case FORMAT_DOT:
        is_done = graph_dot(stdout, landscape);
        break;
    case FORMAT_JSON:
        is_done = graph_json(landscape);
        break;
    default:
        is_done = graph_text(landscape, options->width ? options->width : screen().width);
        break;
    }
    if (!is_done && !ferror(stdout))
        fprintf(stderr, "%s: out of memory\n", command);
    return is_done;
}

int graph_command(int argc, char *argv[])
{
    struct graph_options options = {.limit = LIMIT_DEFAULT};
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
    if (summary_load(argv[optind], true, &summary)) {
        if (!landscape_make(&landscape, &summary, options.limit))
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        else if (show(argv[0], &options, &landscape))
            status = 0;
    }
    landscape_destroy(&landscape);
    status = summary_end(&summary, status);
    return output_flush(argv[0], status);
}
