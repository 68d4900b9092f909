/*
 * blkin report: a page of HTML about traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "page.h"

#include "tools/base/output.h"
#include "tools/trace/options.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#define TRACES_DEFAULT 10
#define TRACES_MAX     50

static const char usage[] =
    "usage: blkin report [OPTION]... FILE|FOLDER|URL\n"
    "\n"
    "Writes a page about all traces of it, for a browser: where the time goes, who\n"
    "calls whom, how long it takes, and the slowest traces' timelines. It is one file\n"
    "that needs nothing else, to be opened, sent or attached to a ticket.\n"
    "\n"
    "  FILE    Zipkin v2 JSON, as of the sink with endpoint=\"file:PATH\"; -: stdin\n"
    "  URL     the same from a server: http://localhost:9411/api/v2/traces?limit=1000\n"
    "          of either: also the statistics of \"blkin work --root\"\n"
    "  FOLDER  a trace as LTTng recorded it; babeltrace2 and the sink read it\n"
    "\n"
    "  -o, --output=FILE  where to, instead of the standard output\n"
    "  -n, --traces=N     how many of the slowest traces, 0 to 50 [default: 10]\n"
    "      --title=TEXT   the page's heading [default: the source]\n"
    "  -h, --help         print this\n"
    "\n"
    "Exit status: 0 written; 1 cannot be read or written; 2 wrong usage.\n";

struct options {
    const char *output; /* NULL: the standard output */
    const char *title;
    size_t traces;
};

int report_command(int argc, char *argv[])
{
    struct options options = {.traces = TRACES_DEFAULT};
    const struct view_option list[] = {
        {"output", VIEW_TEXT, 'o', .value = &options.output},
        {"traces", VIEW_NUMBER, 'n', .value = &options.traces, .min = 0, .max = TRACES_MAX},
        {"title", VIEW_TEXT, 0, .value = &options.title},
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         1,     1,    "one FILE, FOLDER or URL"};
    int status = view_options(argc, argv, &command);
    const char *source;
    struct summary summary;
    struct output output;

    if (status >= 0)
        return status;
    if (!options.output && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "%s: a page is nothing for a terminal: give --output=FILE\n", argv[0]);
        return 2;
    }
    source = argv[optind];
    status = 1;
    if (summary_load(source, &summary) && output_open(&output, argv[0], options.output)) {
        const char *title = options.title              ? options.title
                            : strcmp(source, "-") == 0 ? "blkin report"
                                                       : source;

        status = page_put(output.file, title, &summary, options.traces) ? 0 : 1;
        if (status)
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        if (!output_close(&output, status == 0))
            status = 1;
    }
    summary_free(&summary);
    return status;
}
