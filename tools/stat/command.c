/* blkin stat: statistics per service and span name, of a file or of running services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/config/config.h"
#include "tools/trace/options.h"
#include "tools/trace/read.h"
#include "tools/trace/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
#include "tools/stat/usage.txt.inc"
    ;

/* Returns the exit status if the command ends here, or -1. */
static int read_options(int argc, char *argv[], struct stat_options *options)
{
    static const char *const orders[] = {[OPERATIONS_BY_RATE] = "rate",
                                         [OPERATIONS_BY_P99] = "p99",
                                         [OPERATIONS_BY_SELF] = "self",
                                         [OPERATIONS_BY_ERRORS] = "errors",
                                         NULL};
    const struct view_option list[] = {
        {"interval", VIEW_SECONDS, 'i', .value = &options->interval_ms},
        {"sort", VIEW_CHOICE, 's', .value = &options->order, .choices = orders},
        {"once", VIEW_FLAG, '1', .value = &options->once},
        {"json", VIEW_FLAG, 'j', .value = &options->json},
        {"service", VIEW_TEXT, 0, .value = &options->service},
        VIEW_WIDTH(&options->width),
        VIEW_ONLY_ASCII,
        {"runtime-dir", VIEW_TEXT, 0, .value = &options->runtime_dir},
        {"config", VIEW_TEXT, 0, .value = &options->config},
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         0,     1,    "one FILE, FOLDER or URL at most"};
    int status;

    *options = (struct stat_options){.interval_ms = 2000};
    status = view_options(argc, argv, &command);
    options->source = argv[optind];
    return status;
}

/* ---- all of a file */

static int stat_source(const struct stat_options *options)
{
    struct summary summary;
    int status = 1;

    if (summary_load(options->source, true, &summary)) {
        const struct report report = {
            .statistics = summary.statistics,
            .spans = summary.spans,
            .seconds = summary.seconds,
            .traces.complete = summary.traces_count,
        };

        if (options->json ? print_json(&report, options) : print_table(&report, options))
            status = 0;
        else
            fputs("blkin stat: out of memory\n", stderr);
    }
    status = summary_end(&summary, status);
    return output_flush("blkin stat", status);
}

/* ---- running services */

/* Reads only the sockets' folder from the configuration. */
static int stat_services(const struct stat_options *options, char *name)
{
    const struct config_request request = {.section = "stat", .usage = "", .is_view = true};
    char *flags[] = {name, NULL};
    struct config *config;
    int status;

    if (options->runtime_dir && *options->runtime_dir)
        return watch_services(options, options->runtime_dir);
    if (options->config)
        (void)setenv("BLKIN_CONFIG", options->config, 1);
    config = config_read(&request, 1, flags, &status);
    if (!config)
        return status;
    status = watch_services(options, config_text(config, "runtime-dir"));
    config_free(config);
    return status;
}

int stat_command(int argc, char *argv[])
{
    struct stat_options options;
    const int status = read_options(argc, argv, &options);

    if (status >= 0)
        return status;
    if (options.source)
        return stat_source(&options);
    if (source_rules_path) {
        fprintf(stderr,
                "%s: --rules needs the FOLDER of a recorded trace: running services have their own "
                "rules\n",
                argv[0]);
        return 2;
    }
    return stat_services(&options, argv[0]);
}
