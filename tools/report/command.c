/*
 * blkin report: a page of HTML about traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/trace/options.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#define TRACES_DEFAULT    10
#define REPORT_TRACES_MAX 50

static const char usage[] =
#include "tools/report/usage.txt.inc"
    ;

struct report_options {
    const char *output; /* NULL: standard output */
    const char *title;
    size_t traces;
};

int report_command(int argc, char *argv[])
{
    struct report_options options = {.traces = TRACES_DEFAULT};
    const struct view_option list[] = {
        {"output", VIEW_TEXT, 'o', .value = &options.output},
        {"traces", VIEW_NUMBER, 'n', .value = &options.traces, .min = 0, .max = REPORT_TRACES_MAX},
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
    status = summary_end(&summary, status);
    return status;
}
