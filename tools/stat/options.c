/*
 * The options of blkin stat.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "options.h"

#include "tools/base/text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 86400.0

static bool read_interval(const char *command, const char *text, int64_t *interval_ms)
{
    char *end;
    const double seconds = strtod(text, &end);

    if (*end || end == text || !(seconds >= MIN_INTERVAL_S && seconds <= MAX_INTERVAL_S)) {
        fprintf(stderr, "%s: --interval: expected %.1f to %.0f seconds, got \"%s\"\n", command,
                MIN_INTERVAL_S, MAX_INTERVAL_S, text);
        return false;
    }
    *interval_ms = (int64_t)(seconds * 1000);
    return true;
}

static bool read_sort(const char *command, const char *text, enum sort *sort)
{
    static const char *const names[] = {
        [SORT_RATE] = "rate", [SORT_P99] = "p99", [SORT_SELF] = "self", [SORT_ERRORS] = "errors"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *sort = (enum sort)i;
            return true;
        }
    }
    fprintf(stderr, "%s: --sort: expected rate, p99, self or errors, got \"%s\"\n", command, text);
    return false;
}

/* Returns -1 if it is well. */
static int read_option(int option, const char *command, struct options *options)
{
    switch (option) {
    case 'i':
        return read_interval(command, optarg, &options->interval_ms) ? -1 : 2;
    case 's':
        return read_sort(command, optarg, &options->sort) ? -1 : 2;
    case 'w':
        return read_width(command, optarg, &options->width) ? -1 : 2;
    case '1':
        options->once = true;
        return -1;
    case 'j':
        options->json = true;
        return -1;
    case 'S':
        options->service = optarg;
        return -1;
    case 'R':
        options->runtime_dir = optarg;
        return -1;
    case 'C':
        options->config = optarg;
        return -1;
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

int read_options(int argc, char *argv[], struct options *options)
{
    static const struct option names[] = {
        {"interval", required_argument, NULL, 'i'},
        {"sort", required_argument, NULL, 's'},
        {"once", no_argument, NULL, '1'},
        {"json", no_argument, NULL, 'j'},
        {"service", required_argument, NULL, 'S'},
        {"width", required_argument, NULL, 'w'},
        {"ascii", no_argument, NULL, 'A'},
        {"runtime-dir", required_argument, NULL, 'R'},
        {"config", required_argument, NULL, 'C'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){.interval_ms = 2000};
    while ((option = getopt_long(argc, argv, "i:s:1jw:h", names, NULL)) != -1) {
        const int status = read_option(option, argv[0], options);

        if (status >= 0)
            return status;
    }
    if (argc - optind > 1) {
        fprintf(stderr,
                "%s: expected one FILE, FOLDER, URL or SOCKET at most; --help prints the "
                "usage\n",
                argv[0]);
        return 2;
    }
    options->source = argv[optind];
    return -1;
}
