/* blkin: the command line tool. main() finds the subcommand.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/commands.h"
#include "tools/config/keys.h"
#include "tools/live/readers.h"
#include "tools/live/tracing.h"
#include "tools/reader/graph.h"
#include "tools/rings/fdserver.h"
#include "tools/sampler/sampler.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef BLKIN_RELEASE
#define BLKIN_RELEASE "unknown"
#endif

#ifndef HAS_KAFKA
int work_command(int argc, char *argv[])
{
    (void)argc;
    fprintf(stderr, "%s: this build has no Kafka: build it with librdkafka\n", argv[0]);
    return 1;
}
#endif

struct command {
    const char *name; /* "blkin NAME", the prefix of getopt(3)'s messages */
    const char *what;
    int (*run)(int argc, char *argv[]); /* argv[0] is name; returns the exit status */
};

static const struct command commands[] = {
    {"blkin agent", "collect on this host: slow requests, or every span", agent_command},
    {"blkin config", "check and show the configuration", config_command},
    {"blkin doctor", "say why no spans show up, and what to do", doctor_command},
    {"blkin graph", "show which service calls which, how often, how long", graph_command},
    {"blkin host", "list the metrics of this host, and its disks, processes, ...", host_command},
    {"blkin keep", "ask the agents for a trace, or for the last seconds", keep_command},
    {"blkin live", "record the programs of this host, send spans at once", live_command},
    {"blkin reload", "make a service read its configuration again", reload_command},
    {"blkin report", "write an HTML page about traces", report_command},
    {"blkin rules", "check and try rules, which turn other events into spans", rules_command},
    {"blkin run", "trace a server without changing it", run_command},
    {"blkin show", "print a trace as a timeline", show_command},
    {"blkin stat", "show statistics of spans: like top, or for a file", stat_command},
    {"blkin status", "show the state of the running services", status_command},
    {"blkin work", "assemble traces from Kafka, count them, keep some", work_command},
};

/* The jobs of services' children. */
static const struct job *const jobs[] = {
    &listing_job,         &readers_job,      &relay_job,
    &tracing_make_job,    &tracing_look_job, &tracing_stop_job,
    &tracing_destroy_job, &fdserver_job,     NULL,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *short_name(const struct command *command)
{
    return command->name + strlen("blkin ");
}

static void print_usage(FILE *file)
{
    fputs("usage: blkin COMMAND [ARGUMENT]...\n\ncommands (blkin COMMAND --help):\n", file);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-8s %s\n", short_name(&commands[i]), commands[i].what);
    fputs("\n  -h, --help     print this\n  -V, --version  print the version\n", file);
}

int main(int argc, char *argv[])
{
    const char *given = argc > 1 ? argv[1] : "";
    int status;

    setlocale(LC_CTYPE, ""); /* not LC_NUMERIC: numbers have decimal points */
    keys_set_sampler_check(host_settings_check);
    if (job_run_in_child(argc, argv, jobs, &status))
        return status;
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(given, short_name(&commands[i])) != 0)
            continue;
        argv[1] = (char *)(uintptr_t)commands[i].name;
        return commands[i].run(argc - 1, argv + 1);
    }
    if (strcmp(given, "-h") == 0 || strcmp(given, "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(given, "-V") == 0 || strcmp(given, "--version") == 0) {
        puts("blkin " BLKIN_RELEASE);
        return 0;
    }
    if (strcmp(given, "record") == 0)
        fputs("blkin: \"blkin record\" is called \"blkin agent\" now\n", stderr);
    else if (argc > 1)
        fprintf(stderr, "blkin: unknown command \"%s\"\n", given);
    print_usage(stderr);
    return 2;
}
