/*
 * The tables of groups and metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "definitions.h"

#include <string.h>

#define GROUP(group)                       static const struct host_metric group[] = {
#define COUNTER(place, name, unit, source) [place] = {name, unit, true, source},
#define GAUGE(place, name, unit, source)   [place] = {name, unit, false, source},
#define END \
    }       \
    ;
#include "tools/sampler/metrics.def"
#undef GROUP
#undef COUNTER
#undef GAUGE
#undef END

#define METRICS(array) array, sizeof(array) / sizeof((array)[0])

static const struct host_definition definitions[HOST_KINDS] = {
    [HOST_CPU] = {"cpu", "what the processors did", true, 1000, METRICS(cpu)},
    [HOST_MEMORY] = {"memory", "memory and swap", false, 1000, METRICS(memory)},
    [HOST_PRESSURE] = {"pressure", "time that tasks waited for a resource", false, 1000,
                       METRICS(pressure)},
    [HOST_RUN_QUEUE] = {"run_queue", "threads that run or wait", false, 1000, METRICS(run_queue)},
    [HOST_DISK] = {"disk", "disks and partitions", true, 1000, METRICS(disk)},
    [HOST_NETWORK] = {"network", "network interfaces", true, 1000, METRICS(network)},
    [HOST_TCP] = {"tcp", "TCP of the network namespace", false, 1000, METRICS(tcp)},
    [HOST_PROCESS] = {"process", "processes that are named", true, 1000, METRICS(process)},
    [HOST_CGROUP] = {"cgroup", "control groups that are named", true, 1000, METRICS(cgroup)},
};

const struct host_definition *host_definition(enum host_kind kind)
{
    return &definitions[kind];
}

enum host_kind host_kind_find(const char *name)
{
    for (int kind = 0; kind < HOST_KINDS; kind++)
        if (strcmp(name, definitions[kind].name) == 0)
            return (enum host_kind)kind;
    return HOST_KINDS;
}

int host_metric_find(enum host_kind kind, uint64_t present, const char *name, size_t length)
{
    const struct host_definition *const definition = &definitions[kind];

    for (size_t i = 0; i < definition->count; i++) {
        const char *known = definition->metrics[i].name;

        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return present >> i & 1 ? (int)i : -1;
    }
    return -1;
}
