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
#include "tools/stat/usage.txt.inc"
    ;

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
