/*
 * The options of blkin stat.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "options.h"

#include "tools/base/text.h"
#include "tools/trace/options.h"

#include <unistd.h>

static const char usage[] =
    "usage: blkin stat [OPTION]... [FILE|FOLDER|URL|SOCKET]\n"
    "\n"
    "Shows per service and span name how many spans and errors there are, and how\n"
    "long they take, with their children and by themselves: like top, of what a\n"
    "running \"blkin live\" or \"blkin rotate\" delivers; or once, of all spans in\n"
    "\n"
    "  FILE, URL  Zipkin v2 JSON, as for blkin show; -: stdin\n"
    "  FOLDER     a trace as LTTng recorded it\n"
    "or, like top, from the SOCKET of a sink with tap=\"PATH\".\n"
    "\n"
    "  -i, --interval=SECONDS  how often it is shown [default: 2]\n"
    "  -s, --sort=WHAT         rate, p99, self or errors [default: rate]\n"
    "  -1, --once              show one interval, and end\n"
    "  -j, --json              print an object for each interval, as in blkin-stat(1)\n"
    "      --service=GLOB      show services of this name only, as \"osd*\"\n"
    "  -w, --width=N           lines of N columns (default: the terminal's, or 80)\n"
    "      --ascii             only ASCII characters\n"
    "      --runtime-dir=DIR, --config=FILE  where the service is, see blkin.conf(5)\n"
    "  -h, --help              print this\n"
    "\n"
    "Exit status: 0 shown; 1 cannot be read, or nothing runs; 2 wrong usage.\n";

int read_options(int argc, char *argv[], struct options *options)
{
    static const char *const sorts[] = {[SORT_RATE] = "rate",
                                        [SORT_P99] = "p99",
                                        [SORT_SELF] = "self",
                                        [SORT_ERRORS] = "errors",
                                        NULL};
    const struct view_option list[] = {
        {"interval", VIEW_SECONDS, 'i', .value = &options->interval_ms},
        {"sort", VIEW_CHOICE, 's', .value = &options->sort, .choices = sorts},
        {"once", VIEW_FLAG, '1', .value = &options->once},
        {"json", VIEW_FLAG, 'j', .value = &options->json},
        {"service", VIEW_TEXT, 0, .value = &options->service},
        VIEW_WIDTH(&options->width),
        VIEW_ONLY_ASCII,
        {"runtime-dir", VIEW_TEXT, 0, .value = &options->runtime_dir},
        {"config", VIEW_TEXT, 0, .value = &options->config},
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         0,     1,    "one FILE, FOLDER, URL or SOCKET at most"};
    int status;

    *options = (struct options){.interval_ms = 2000};
    status = view_options(argc, argv, &command);
    options->source = argv[optind];
    return status;
}
