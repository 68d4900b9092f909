/*
 * blkin host: finds out what is wanted of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include "list.h"
#include "print.h"
#include "service.h"
#include "settings.h"
#include "tools/base/duration.h"
#include "tools/config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
#include "tools/host/usage.txt.inc"
    ;

struct options {
    bool lists;
    bool lists_metrics;
    bool prints;
    bool is_once;
    bool is_json;
    const char *group;
    const char *every;
    enum host_kind kind; /* HOST_KINDS: a line for the host */
    uint32_t every_ms;
};

static bool command_refuse(const char *command, const char *what, const char *got)
{
    fprintf(stderr, "%s: expected %s, got \"%s\"\n", command, what, got);
    return false;
}

/* Returns false after it has said why. */
static bool check_options(const char *command, struct options *options)
{
    const int64_t every = options->every ? duration_ms(options->every) : 1000;

    options->kind = HOST_KINDS;
    if (options->group) {
        options->kind = host_kind_find(options->group);
        if (options->kind == HOST_KINDS)
            return command_refuse(command,
                                  "--details=cpu, memory, pressure, run_queue, disk, network, tcp, "
                                  "process or cgroup",
                                  options->group);
    }
    if (every < HOST_PERIOD_MIN_MS || every > HOST_PERIOD_MAX_MS)
        return command_refuse(command, "--every= from 100ms to 5m", options->every);
    options->every_ms = (uint32_t)every;
    if (options->lists + options->lists_metrics + options->prints > 1) {
        fprintf(stderr, "%s: expected one of --list, --metrics and --print\n", command);
        return false;
    }
    if (!options->prints && (options->is_once || options->group || options->every)) {
        fprintf(stderr, "%s: --once, --details and --every are of --print\n", command);
        return false;
    }
    if (options->is_json && !options->lists && !options->lists_metrics && !options->prints) {
        fprintf(stderr, "%s: --json is of --list, --metrics and --print\n", command);
        return false;
    }
    return true;
}

/* ---- printing */

/* All at the same times; of the groups that are not shown nothing is read. */
static void want_what_is_shown(struct host_config *config, const struct options *options)
{
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        struct host_wanted *const wanted = &config->wanted[kind];
        const bool is_shown = options->group ? (int)options->kind == kind : wanted->period_ms != 0;

        wanted->period_ms = is_shown ? options->every_ms : 0;
    }
}

static bool print_report(const struct observer *observer, const struct options *options,
                         size_t line)
{
    if (options->is_json)
        return host_print_json(observer);
    if (options->kind == HOST_KINDS)
        host_print_line(observer, line);
    else
        host_print_group(observer, options->kind);
    return true;
}

static bool wait_until(struct timespec *time, uint32_t ms)
{
    int result;

    time->tv_sec += ms / 1000;
    time->tv_nsec += (long)(ms % 1000) * 1000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
    do
        result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL);
    while (result == EINTR);
    return result == 0;
}

/* Until it is interrupted, or nobody reads it. */
static bool print(const struct host_config *config, const struct options *options,
                  struct error *error)
{
    struct observer *const observer = calloc(1, sizeof(*observer));
    struct host *const host = observer ? host_open(config, error) : NULL;
    bool is_well = host != NULL;
    struct timespec next;

    if (!observer)
        error_set(error, "out of memory");
    clock_gettime(CLOCK_MONOTONIC, &next);
    if (is_well)
        observe(observer, host);
    for (size_t line = 0; is_well; line++) {
        is_well = wait_until(&next, options->every_ms);
        observe(observer, host);
        is_well = is_well && print_report(observer, options, line);
        if (!is_well)
            error_set(error, "out of memory");
        if (options->is_once || fflush(stdout) != 0)
            break;
    }
    host_close(host);
    free(observer);
    return is_well;
}

/* ---- */

/* Returns the exit status. */
static int command_run(const char *command, const struct config *config, struct options *options)
{
    struct host_config wanted;
    struct error error;
    bool is_well;

    if (!host_settings_read(config, &wanted, &error)) {
        fprintf(stderr, "%s: %s\n", command, error.text);
        return 2;
    }
    if (options->lists) {
        is_well = host_list_instances(&wanted, options->is_json, &error);
    } else if (options->lists_metrics) {
        is_well = host_list_metrics(options->is_json, &error);
    } else {
        want_what_is_shown(&wanted, options);
        is_well = print(&wanted, options, &error);
    }
    if (!is_well)
        fprintf(stderr, "%s: %s\n", command, error.text);
    if (is_well && (fflush(stdout) || ferror(stdout))) {
        fprintf(stderr, "%s: cannot write: %s\n", command, strerror(errno));
        is_well = false;
    }
    return is_well ? 0 : 1;
}

int host_command(int argc, char *argv[])
{
    struct options options = {.lists = false};
    const struct config_flag flags[] = {
        {"list", &options.lists, NULL},   {"metrics", &options.lists_metrics, NULL},
        {"print", &options.prints, NULL}, {"once", &options.is_once, NULL},
        {"json", &options.is_json, NULL}, {"details", NULL, &options.group},
        {"every", NULL, &options.every},  {NULL, NULL, NULL},
    };
    const struct config_request request = {"host", usage, flags};
    int status;
    struct config *const config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    if (config_operands(config) > 0) {
        fprintf(stderr, "%s: unknown argument \"%s\"; --help prints the usage\n", argv[0],
                config_operand(config, 0));
        status = 2;
    } else if (!check_options(argv[0], &options)) {
        status = 2;
    } else if (options.lists || options.lists_metrics || options.prints) {
        status = command_run(argv[0], config, &options);
    } else {
        return host_serve(config);
    }
    config_free(config);
    return status;
}
