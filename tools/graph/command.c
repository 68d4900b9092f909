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
#include "tools/graph/usage.txt.inc"
    ;

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_DOT, FORMAT_JSON };

static const char *const formats[] = {"text", "svg", "dot", "json", NULL};

struct options {
    unsigned format;
    size_t limit;
    size_t width;
};

static bool show(const struct options *options, const struct landscape *landscape)
{
    switch (options->format) {
    case FORMAT_SVG:
        return graph_svg(stdout, landscape, false);
    case FORMAT_DOT:
        graph_dot(landscape);
        return true;
    case FORMAT_JSON:
        return graph_json(landscape);
    default:
        return graph_text(landscape, options->width ? options->width : screen().width);
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
        if (landscape_make(&landscape, &summary, options.limit) && show(&options, &landscape))
            status = 0;
        else
            fprintf(stderr, "%s: out of memory\n", argv[0]);
    }
    landscape_destroy(&landscape);
    summary_free(&summary);
    return output_flush(argv[0], status);
}
