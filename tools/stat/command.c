/*
 * blkin stat: statistics per service and span name, of a file or of what runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include "../config/config.h"
#include "../trace/traces.h"
#include "options.h"
#include "report.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- all of a file */

static bool add_all(struct statistics *statistics, struct names *names,
                    const struct span_list *spans, struct trace_list *traces)
{
    struct trace_model model = {0};
    bool done = traces_sort(spans, traces);

    for (size_t i = 0; done && i < traces->count; i++)
        done = trace_link(&traces->traces[i], names, &model) &&
               statistics_add_trace(statistics, &model);
    trace_model_destroy(&model);
    return done;
}

/* From the first span's start to the last one's end. */
static double seconds_of(const struct trace_list *traces)
{
    int64_t start = 0, end = 0;

    for (size_t i = 0; i < traces->count; i++) {
        const struct trace *trace = &traces->traces[i];

        if (!trace->start_ns)
            continue;
        start = start && start < trace->start_ns ? start : trace->start_ns;
        end = end > trace->end_ns ? end : trace->end_ns;
    }
    return (double)(end - start) / 1e9;
}

static bool show_all(const struct options *options, struct statistics *statistics,
                     struct names *names, const struct span_list *spans, struct trace_list *traces)
{
    struct report report = {.statistics = statistics, .spans = spans->count};

    if (!add_all(statistics, names, spans, traces))
        return false;
    report.seconds = seconds_of(traces);
    report.traces.complete = traces->count;
    return options->json ? print_json(&report, options) : print_table(&report, options);
}

static int stat_source(const struct options *options)
{
    struct names *names = names_of_file();
    struct statistics *statistics = names ? statistics_new(names) : NULL;
    struct span_list spans;
    struct trace_list traces = {NULL, 0, NULL};
    int status = 1;

    if (spans_load(options->source, &spans)) {
        if (statistics && show_all(options, statistics, names, &spans, &traces))
            status = 0;
        else
            fputs("blkin stat: out of memory\n", stderr);
    }
    traces_free(&traces);
    spans_free(&spans);
    statistics_free(statistics);
    names_free(names);
    if (fflush(stdout) || ferror(stdout)) {
        perror("blkin stat: cannot write");
        status = 1;
    }
    return status;
}

/* ---- what runs */

/* The configuration tells where; nothing else of it is of use here. */
static int stat_services(const struct options *options, char *name)
{
    char *flags[4] = {name};
    char runtime_dir[4200], file[4200];
    int count = 1, status;
    const struct config_request request = {.section = "stat", .usage = ""};
    struct config *config;

    if (options->runtime_dir) {
        snprintf(runtime_dir, sizeof(runtime_dir), "--runtime-dir=%s", options->runtime_dir);
        flags[count++] = runtime_dir;
    }
    if (options->config) {
        snprintf(file, sizeof(file), "--config=%s", options->config);
        flags[count++] = file;
    }
    config = config_read(&request, count, flags, &status);
    if (!config)
        return status;
    status = watch_services(options, config_text(config, "runtime-dir"));
    config_free(config);
    return status;
}

static bool is_socket(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISSOCK(found.st_mode);
}

int stat_command(int argc, char *argv[])
{
    struct options options;
    const int status = read_options(argc, argv, &options);

    if (status >= 0)
        return status;
    if (!options.source)
        return stat_services(&options, argv[0]);
    return is_socket(options.source) ? watch_tap(&options, options.source) : stat_source(&options);
}
