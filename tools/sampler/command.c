/*
 * blkin host: lists the instances and the metrics of this host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "observe.h"
#include "sampler.h"
#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/config/config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

static const char usage[] =
#include "tools/sampler/usage.txt.inc"
    ;

/* Prints and frees a line of JSON. Returns false for NULL, when out of memory. */
static bool put_json(json_t *json)
{
    const bool is_well = json && json_dumpf(json, stdout, JSON_COMPACT) == 0;

    json_decref(json);
    if (is_well)
        putchar('\n');
    return is_well;
}

/* ---- the lists ------------------------------------------------------------------------------- */

struct instance_list {
    bool is_json, is_well;
    unsigned counts[HOST_KINDS]; /* instances */
};

/* A host_sampled_fn: prints an instance. The kinds come one after the other. */
static void list_instance(void *context, const struct host_sample *sample)
{
    static const char *const headings[HOST_KINDS] = {
        [HOST_CPU] = "CPUs (cpu = each)",
        [HOST_DISK] = "disks and partitions (disk = NAME,...)",
        [HOST_NETWORK] = "network interfaces (network = NAME,...)",
        [HOST_PROCESS] = "processes (process = NAME, pid:NUMBER or unit:NAME.service,...)",
        [HOST_CGROUP] = "control groups (cgroup = PATH,...)",
    };
    struct instance_list *const list = context;
    char name[OBSERVED_NAME_BYTES];
    const unsigned number = list->counts[sample->kind]++;

    if (!headings[sample->kind] || !*sample->instance)
        return; /* the group as a whole */
    observed_name(name, sample->instance);
    if (list->is_json) {
        list->is_well &= put_json(json_pack("{ss, ss}", "group", sample->group, "instance", name));
        return;
    }
    if (number == (sample->kind == HOST_CPU)) /* all CPUs together come first */
        printf("%s:\n", headings[sample->kind]);
    fputs("  ", stdout);
    put_text(name, OBSERVED_NAME_BYTES);
    putchar('\n');
}

static void print_missing(const struct instance_list *list)
{
    for (int kind = 0; kind < HOST_PROCESS; kind++) {
        if (list->counts[kind])
            continue;
        if (kind == HOST_PRESSURE)
            printf("This host has no pressure: the kernel has no pressure stall information, or it "
                   "is switched off (boot with psi=1).\n");
        else
            printf("This host has no %s (%s).\n", host_definition((enum host_kind)kind)->name,
                   host_definition((enum host_kind)kind)->what);
    }
}

static const char *or_all(const char *instances, const char *all)
{
    return instances && *instances ? instances : all;
}

/* Lists the configured instances of each group, or all if the configuration names none: of control
 * groups, those of the upper two levels and of units. Lists only processes that the configuration
 * names. Returns false with error set. */
static bool host_list_instances(const struct host_config *config, bool is_json, struct error *error)
{
    struct instance_list list = {.is_json = is_json, .is_well = true};
    struct host_config all = *config;
    struct host_reader *host;

    for (int kind = 0; kind < HOST_KINDS; kind++)
        all.wanted[kind].period_ms = HOST_PERIOD_MAX_MS;
    all.wanted[HOST_CPU].instances = "each";
    all.wanted[HOST_DISK].instances = or_all(all.wanted[HOST_DISK].instances, "*");
    all.wanted[HOST_NETWORK].instances = or_all(all.wanted[HOST_NETWORK].instances, "*");
    all.wanted[HOST_CGROUP].instances = or_all(all.wanted[HOST_CGROUP].instances, "*,*/*,unit:*");
    host = host_open(&all, error);
    if (!host)
        return false;
    host_sample_all(host, list_instance, &list);
    if (!list.is_well)
        error_set(error, "out of memory");
    if (!is_json) {
        print_missing(&list);
        if (host_counts(host).no_room > 0)
            printf("%" PRIu64 " more are not listed: there are too many. Name those you want.\n",
                   host_counts(host).no_room);
    }
    host_close(host);
    return list.is_well;
}

/* Lists the metrics of all groups. Returns false with error set. */
static bool host_list_metrics(bool is_json, struct error *error)
{
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        const struct host_definition *const definition = host_definition((enum host_kind)kind);

        if (!is_json)
            printf("%s: %s\n", definition->name, definition->what);
        for (size_t i = 0; i < definition->count; i++) {
            const struct host_metric *const metric = &definition->metrics[i];

            if (!is_json)
                printf("  %-48s %-12s %-7s %s\n", metric->name, metric->unit,
                       metric->is_counter ? "counter" : "gauge", metric->source);
            else if (!put_json(json_pack("{ss, ss, ss, sb, ss}", "group", definition->name, "name",
                                         metric->name, "unit", metric->unit, "counter",
                                         metric->is_counter, "source", metric->source)))
                return error_set(error, "out of memory");
        }
    }
    return true;
}

/* ---- the command */

int host_command(int argc, char *argv[])
{
    bool lists = false, lists_metrics = false, is_json = false;
    const struct config_flag flags[] = {
        {"list", &lists, NULL},
        {"metrics", &lists_metrics, NULL},
        {"json", &is_json, NULL},
        {NULL, NULL, NULL},
    };
    const struct config_request request = {
        .section = "agent", .usage = usage, .flags = flags, .is_view = true};
    struct host_config wanted;
    struct error error = {""};
    int status;
    struct config *const config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    if (config_operands(config) > 0)
        error_set(&error, "unknown argument \"%s\"; --help prints the usage",
                  config_operand(config, 0));
    else if (lists == lists_metrics)
        error_set(&error, "expected one of --list and --metrics; `blkin agent` samples this host");
    else if (host_settings_read(config, &wanted, &error))
        status = (lists ? host_list_instances(&wanted, is_json, &error)
                        : host_list_metrics(is_json, &error))
                     ? 0
                     : 1;
    if (error.text[0]) {
        status = status ? status : 2;
        fprintf(stderr, "%s: %s\n", argv[0], error.text);
    }
    config_free(config);
    return output_flush(argv[0], status);
}
