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
#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/control.h"
#include "tools/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <poll.h>

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

/* ---- a file, a folder or a URL */

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

/* ---- running services ------------------------------------------------------------------------ */

#define STAT_ASK_MS      5000 /* services count for 10 s after a request */
#define COMPLETE_MS      2500 /* before --once: a trace counts as complete after 2 s */
#define STAT_NAMES_MAX   65536
#define STAT_NAMES_BYTES ((size_t)16 << 20)

static const char *const services[STAT_SERVICES_MAX] = {"live", "agent"};

struct stat_watch {
    const struct stat_options *options;
    const char *folder; /* with the services' sockets */
    struct names *names;
    struct statistics *statistics;
    json_t *before[STAT_SERVICES_MAX]; /* the documents at the begin of the interval, by source */
    json_t *now[STAT_SERVICES_MAX];
    struct report report;
};

/* ---- asking ---------------------------------------------------------------------------------- */

/* Returns {SOURCE: document, ...} from an answer to "statistics". */
static json_t *by_source(const json_t *answer)
{
    const json_t *sources = json_object_get(answer, "sources");
    json_t *map = json_object(), *document;
    size_t i;

    json_array_foreach(sources, i, document)
    {
        (void)json_object_set(map, text_in(document, "source"), document);
    }
    return map;
}

/* Returns false if no such service runs, which is no error. The document stays the same if a
 * service that has answered before does not answer: its next answer has the spans of both
 * intervals. */
static bool ask_service(struct stat_watch *watch, int i)
{
    struct report_service *service = &watch->report.services[i];
    struct error error;
    json_t *status = control_ask(watch->folder, services[i], "status", &error);
    json_t *answer = status ? control_ask(watch->folder, services[i], "statistics", &error) : NULL;

    if (!answer && (watch->now[i] || watch->before[i]) &&
        control_runs(watch->folder, services[i])) {
        fprintf(stderr, "blkin stat: %s\n", error.text);
        if (!watch->now[i])
            watch->now[i] = json_incref(watch->before[i]);
        json_decref(status);
        return true;
    }
    json_decref(service->account);
    service->name = services[i];
    service->account = json_incref(json_object_get(status, "counters"));
    (void)snprintf(service->only, sizeof(service->only), "%s", text_in(answer, "only"));
    json_decref(watch->now[i]);
    watch->now[i] = answer ? by_source(answer) : NULL;
    json_decref(answer);
    json_decref(status);
    return watch->now[i] != NULL;
}

static bool ask_services(struct stat_watch *watch)
{
    bool one_answers = false;

    for (int i = 0; i < STAT_SERVICES_MAX; i++)
        one_answers |= ask_service(watch, i);
    return one_answers;
}

/* ---- an interval ----------------------------------------------------------------------------- */

static uint64_t count_since(const json_t *now, const json_t *before, const char *key)
{
    const uint64_t count = statistics_count_at(now, key);
    const uint64_t was = statistics_count_at(before, key);

    return count > was ? count - was : 0;
}

static bool add_source(struct stat_watch *watch, const json_t *now, const json_t *before)
{
    struct report *report = &watch->report;
    const double seconds = json_number_value(json_object_get(now, "seconds")) -
                           json_number_value(json_object_get(before, "seconds"));
    struct error error;

    if (!statistics_read(watch->statistics, watch->names, now, STATISTICS_ADD, &error)) {
        fprintf(stderr, "blkin stat: the answer of a service: %s\n", error.text);
        return false;
    }
    report->sources++;
    report->spans += count_since(now, before, "spans");
    report->traces.complete += count_since(now, before, "traces");
    report->traces.early += count_since(now, before, "traces_early");
    report->traces.open += statistics_count_at(now, "traces_open");
    if (seconds > report->seconds)
        report->seconds = seconds;
    return true;
}

/* Adds the new documents before it subtracts the old ones. */
static bool add_service(struct stat_watch *watch, int i)
{
    const char *source;
    json_t *document;

    json_object_foreach(watch->now[i], source, document)
    {
        if (!add_source(watch, document, json_object_get(watch->before[i], source)))
            return false;
    }
    json_object_foreach(watch->before[i], source, document)
    {
        struct error ignored;

        if (json_object_get(watch->now[i], source))
            (void)statistics_read(watch->statistics, watch->names, document, STATISTICS_REMOVE,
                                  &ignored);
    }
    return true;
}

/* Prints the report of the interval until now. Returns false after printing the reason. */
static bool end_interval(struct stat_watch *watch, double seconds)
{
    struct report *report = &watch->report;
    bool done = true;

    statistics_clear(watch->statistics);
    names_clear(watch->names);
    report->spans = report->sources = 0;
    report->traces = (struct report_traces){.open = 0};
    report->seconds = 0;
    for (int i = 0; done && i < STAT_SERVICES_MAX; i++)
        done = add_service(watch, i);
    if (report->seconds <= 0)
        report->seconds = seconds;
    if (done && !(watch->options->json ? print_json(report, watch->options)
                                       : print_table(report, watch->options))) {
        fputs("blkin stat: out of memory\n", stderr);
        done = false;
    }
    return done && output_flush("blkin stat", 0) == 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Asks repeatedly, so that services continue to count; at least once, however slow this machine is.
 * Returns false if no service answers any more. */
static bool wait_for_interval(struct stat_watch *watch, int64_t interval_ms)
{
    const int64_t end_ms = clock_ms() + interval_ms;
    int64_t left_ms = interval_ms;

    do {
        (void)poll(NULL, 0, (int)clock_earlier(left_ms, STAT_ASK_MS));
        if (!ask_services(watch)) {
            fprintf(stderr, "blkin stat: the service has ended\n");
            return false;
        }
        left_ms = end_ms - clock_ms();
    } while (left_ms > 0);
    return true;
}

static int run(struct stat_watch *watch)
{
    bool goes_on = !watch->options->once || wait_for_interval(watch, COMPLETE_MS);

    while (goes_on) {
        const int64_t begin_ms = clock_ms();

        for (int i = 0; i < STAT_SERVICES_MAX; i++) {
            json_decref(watch->before[i]);
            watch->before[i] = watch->now[i];
            watch->now[i] = NULL;
        }
        goes_on = wait_for_interval(watch, watch->options->interval_ms);
        if (goes_on && !end_interval(watch, (double)(clock_ms() - begin_ms) / 1000))
            return 1;
        goes_on = goes_on && !watch->options->once;
    }
    return 0;
}

/* Watches the services with sockets in the folder. Prints its errors and returns the exit status.
 */
static int watch_services(const struct stat_options *options, const char *folder)
{
    struct stat_watch watch = {.options = options, .folder = folder, .report.is_live = true};
    int status = 1;

    watch.names = names_new(STAT_NAMES_MAX, STAT_NAMES_BYTES);
    if (watch.names)
        watch.report.statistics = watch.statistics = statistics_new(watch.names);
    if (!watch.statistics)
        fputs("blkin stat: out of memory\n", stderr);
    else if (ask_services(&watch))
        status = run(&watch);
    else
        fprintf(stderr,
                "blkin stat: no service answers in \"%s\": start \"blkin agent\" or \"blkin "
                "live\", name its --runtime-dir, or give a FILE, FOLDER or URL\n",
                folder);
    for (int i = 0; i < STAT_SERVICES_MAX; i++) {
        json_decref(watch.report.services[i].account);
        json_decref(watch.before[i]);
        json_decref(watch.now[i]);
    }
    statistics_free(watch.statistics);
    names_free(watch.names);
    return status;
}

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
