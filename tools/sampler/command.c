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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define LIST_NAME_COLUMNS 40
#define BYTES_PER_GIB     (1024.0 * 1024 * 1024)

/* ---- a device in /sys */

struct about {
    uint64_t bytes;
    bool is_partition;
    char state[16]; /* an interface's state: "up" */
};

/* Reads the first word of a device's file; "": none. */
static void read_word(const char *root, const char *class, const char *name, const char *file,
                      char word[16])
{
    char path[PATH_MAX];
    FILE *opened;
    size_t at;

    word[0] = '\0';
    at = (size_t)snprintf(path, sizeof(path), "%s/sys/class/%s/", root, class);
    if (at >= sizeof(path))
        return;
    (void)snprintf(path + at, sizeof(path) - at, "%s", name);
    for (; path[at]; at++)
        path[at] = path[at] == '/' ? '!' : path[at]; /* as the kernel names it in /sys */
    (void)snprintf(path + at, sizeof(path) - at, "/%s", file);
    opened = fopen(path, "re");
    if (!opened)
        return;
    if (fscanf(opened, "%15s", word) != 1)
        word[0] = '\0';
    (void)fclose(opened);
}

static struct about about_of(const char *root, const struct observed *observed)
{
    struct about about = {0};
    char word[16];

    if (observed->kind == HOST_DISK) {
        read_word(root, "block", observed->name, "size", word);
        about.bytes = strtoull(word, NULL, 10) * SECTOR_BYTES;
        read_word(root, "block", observed->name, "partition", word);
        about.is_partition = word[0] != '\0';
    } else if (observed->kind == HOST_NETWORK) {
        read_word(root, "net", observed->name, "operstate", about.state);
    }
    return about;
}

/* ---- text, JSON */

static uint64_t value_of(const struct observed *observed, const char *name)
{
    const int i = host_metric_find(observed->kind, observed->after.present, name, strlen(name));

    return i < 0 ? 0 : observed->after.values[i];
}

static void print_instance(const struct observed *observed, const struct about *about)
{
    fputs("  ", stdout);
    put_spaces(LIST_NAME_COLUMNS - put_text(observed->name, LIST_NAME_COLUMNS));
    if (observed->kind == HOST_DISK)
        printf(" %9.1f GiB  %s", (double)about->bytes / BYTES_PER_GIB,
               about->is_partition ? "partition" : "disk");
    else if (observed->kind == HOST_NETWORK)
        printf(" %s", about->state);
    else if (observed->kind == HOST_PROCESS)
        printf(" %9.1f MiB  %" PRIu64 " threads",
               (double)value_of(observed, "process.memory.usage") / 1024 / 1024,
               value_of(observed, "process.thread.count"));
    putchar('\n');
}

static json_t *instance_json(const struct observed *observed, const struct about *about)
{
    json_t *const json = json_pack("{ss, ss}", "group", host_definition(observed->kind)->name,
                                   "instance", observed->name);

    if (json && observed->kind == HOST_DISK) {
        json_object_set_new(json, "bytes", json_integer((json_int_t)(about->bytes & INT64_MAX)));
        json_object_set_new(json, "partition", json_boolean(about->is_partition));
    } else if (json && observed->kind == HOST_NETWORK) {
        json_object_set_new(json, "state", json_string(about->state));
    }
    return json;
}

static bool list_kind(const struct observer *observer, enum host_kind kind, const char *root,
                      bool is_json)
{
    static const char *const headings[HOST_KINDS] = {
        [HOST_CPU] = "CPUs (cpu = each)",
        [HOST_DISK] = "disks and partitions (disk = NAME,...)",
        [HOST_NETWORK] = "network interfaces (network = NAME,...)",
        [HOST_PROCESS] = "processes (process = NAME, pid:NUMBER or unit:NAME.service,...)",
        [HOST_CGROUP] = "control groups (cgroup = PATH,...)",
    };
    bool is_first = true;

    if (!host_definition(kind)->has_instances)
        return true;
    for (size_t i = 0; i < HOST_SLOTS; i++) {
        const struct observed *const one = &observer->slots[i];
        struct about about;

        if (!one->after.at || one->kind != kind || (kind == HOST_CPU && !*one->name))
            continue;
        about = about_of(root, one);
        if (is_json && !put_json(instance_json(one, &about)))
            return false;
        if (!is_json && is_first)
            printf("%s:\n", headings[kind]);
        if (!is_json)
            print_instance(one, &about);
        is_first = false;
    }
    return true;
}

static void print_missing(const struct observer *observer)
{
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        bool is_there = kind == HOST_PROCESS || kind == HOST_CGROUP;

        for (size_t i = 0; i < HOST_SLOTS && !is_there; i++)
            is_there =
                observer->slots[i].after.at && observer->slots[i].kind == (enum host_kind)kind;
        if (!is_there && kind == HOST_PRESSURE)
            printf("This host has no pressure: the kernel has no pressure stall information, or it "
                   "is switched off (boot with psi=1).\n");
        else if (!is_there)
            printf("This host has no %s (%s).\n", host_definition((enum host_kind)kind)->name,
                   host_definition((enum host_kind)kind)->what);
    }
}

static const char *or_all(const char *instances, const char *all)
{
    return instances && *instances ? instances : all;
}

/* Lists the configured instances of a group, or all if the configuration names none. Lists only
 * processes that the configuration names. Returns false with error set. */
static bool host_list_instances(const struct host_config *config, bool is_json, struct error *error)
{
    const char *const root = config->root ? config->root : "";
    struct host_config all = *config;
    struct observer *const observer = calloc(1, sizeof(*observer));
    struct host_reader *host = NULL;
    bool is_well = false;

    for (int kind = 0; kind < HOST_KINDS; kind++)
        all.wanted[kind].period_ms = HOST_PERIOD_MAX_MS;
    all.wanted[HOST_CPU].instances = "each";
    all.wanted[HOST_DISK].instances = or_all(all.wanted[HOST_DISK].instances, "*");
    all.wanted[HOST_NETWORK].instances = or_all(all.wanted[HOST_NETWORK].instances, "*");
    all.wanted[HOST_CGROUP].instances = or_all(all.wanted[HOST_CGROUP].instances, "*,*/*,unit:*");
    if (observer && (host = host_open(&all, error))) {
        host_sample_all(host, observe_sample, observer);
        is_well = true;
    }
    for (int kind = 0; is_well && kind < HOST_KINDS; kind++)
        is_well = list_kind(observer, (enum host_kind)kind, root, is_json);
    if (!observer || (host && !is_well))
        error_set(error, "out of memory");
    if (is_well && !is_json) {
        print_missing(observer);
        if (host_counts(host).no_room > 0)
            printf("%" PRIu64 " more are not listed: there are too many. Name those you want.\n",
                   host_counts(host).no_room);
    }
    host_close(host);
    free(observer);
    return is_well;
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
