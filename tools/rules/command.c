/*
 * blkin rules: the plugin knows rules and events; this runs babeltrace2 with it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include "babeltrace-plugin/rules/rules.h"
#include "tools/trace/read.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/rules/usage.txt.inc"
    ;

/* Returns the exit status. */
static int rules_check_file(const char *path, bool is_told)
{
    struct error error;
    struct rules *rules = rules_read(path, &error);

    if (!rules) {
        fprintf(stderr, "blkin: %s\n", error.text);
        return 1;
    }
    if (is_told)
        printf("%s: %zu kinds of spans, %zu lookups, %zu fields: no errors\n", path, rules->count,
               rules->lookup_count, rules->field_count);
    rules_free(rules);
    return 0;
}

/* Returns only if that fails. */
static int rules_run(const char *const arguments[])
{
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "blkin rules: cannot run babeltrace2: %s\n", strerror(errno));
    return 1;
}

/* Says so if not: babeltrace2 would in many lines. */
static bool rules_is_trace(const char *path)
{
    if (is_trace(path))
        return true;
    fprintf(stderr, "blkin rules: %s: expected the folder of a recorded trace\n", path);
    return false;
}

static int rules_events(const char *trace)
{
    const char *const arguments[] = {"babeltrace2", trace, "--component=sink.blkin.events",
                                     "--log-level=ERROR", NULL};

    return rules_is_trace(trace) ? rules_run(arguments) : 1;
}

static int rules_try(const char *path, const char *trace)
{
    char *params =
        read_params("endpoint=\"file:/dev/null\",host-min-ms=-1,rules-report=\"-\"", path);
    const char *const arguments[] = {"babeltrace2",       trace,  "--component=sink.blkin.zipkin",
                                     "--log-level=ERROR", params, NULL};
    const bool is_right = rules_check_file(path, false) == 0 && rules_is_trace(trace);
    const int status = params && is_right ? rules_run(arguments) : 1;

    free(params);
    return status;
}

int rules_command(int argc, char *argv[])
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const int option = getopt_long(argc, argv, "h", options, NULL);
    char **operands = argv + optind;
    const int count = argc - optind;

    if (option == 'h') {
        fputs(usage, stdout);
        return 0;
    }
    if (option == -1 && count == 2 && strcmp(operands[0], "check") == 0)
        return rules_check_file(operands[1], true);
    if (option == -1 && count == 2 && strcmp(operands[0], "events") == 0)
        return rules_events(operands[1]);
    if (option == -1 && count == 3 && strcmp(operands[0], "try") == 0)
        return rules_try(operands[1], operands[2]);
    fprintf(stderr,
            "%s: expected check RULES, events TRACE or try RULES TRACE; --help prints the "
            "usage\n",
            argv[0]);
    return 2;
}
