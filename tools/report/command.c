/*
 * blkin report: a page of HTML about traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "page.h"

#include "tools/base/output.h"

#include <getopt.h>
#include <stdlib.h>
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
    const char *source;
    const char *output; /* NULL: the standard output */
    const char *title;
    size_t traces;
};

static bool read_traces(const char *command, const char *text, size_t *traces)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);

    if (*end || end == text || value > TRACES_MAX) {
        fprintf(stderr, "%s: --traces: expected a number of 0 to %d, got \"%s\"\n", command,
                TRACES_MAX, text);
        return false;
    }
    *traces = value;
    return true;
}

/* The exit status if there is nothing to do after this, or -1. */
static int read_options(int argc, char *argv[], struct options *options)
{
    static const struct option names[] = {
        {"output", required_argument, NULL, 'o'},
        {"traces", required_argument, NULL, 'n'},
        {"title", required_argument, NULL, 'T'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "o:n:h", names, NULL)) != -1) {
        switch (option) {
        case 'o':
            options->output = optarg;
            break;
        case 'n':
            if (!read_traces(argv[0], optarg, &options->traces))
                return 2;
            break;
        case 'T':
            options->title = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fprintf(stderr, "%s --help prints the usage\n", argv[0]);
            return 2;
        }
    }
    if (argc - optind != 1) {
        fprintf(stderr, "%s: expected one FILE, FOLDER or URL; --help prints the usage\n", argv[0]);
        return 2;
    }
    options->source = argv[optind];
    return -1;
}

int report_command(int argc, char *argv[])
{
    struct options options = {.traces = TRACES_DEFAULT};
    int status = read_options(argc, argv, &options);
    struct summary summary;
    struct output output;

    if (status >= 0)
        return status;
    if (!options.output && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "%s: a page is nothing for a terminal: give --output=FILE\n", argv[0]);
        return 2;
    }
    status = 1;
    if (summary_load(options.source, &summary) && output_open(&output, argv[0], options.output)) {
        const char *title = options.title                      ? options.title
                            : strcmp(options.source, "-") == 0 ? "blkin report"
                                                               : options.source;

        status = page_put(output.file, title, &summary, options.traces) ? 0 : 1;
        if (status)
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        if (!output_close(&output, status == 0))
            status = 1;
    }
    summary_free(&summary);
    return status;
}
