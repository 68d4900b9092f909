/*
 * The groups of a host's metrics, and the index of each value in its group.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_DEFINITIONS_H
#define BLKIN_SAMPLER_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S     UINT64_C(1000000000)
#define NS_PER_MS    UINT64_C(1000000)
#define NS_PER_US    UINT64_C(1000)
#define SECTOR_BYTES 512

enum host_kind {
    HOST_CPU,
    HOST_MEMORY,
    HOST_PRESSURE,
    HOST_RUN_QUEUE,
    HOST_DISK,
    HOST_NETWORK,
    HOST_TCP,
    HOST_PROCESS,
    HOST_CGROUP,
    HOST_KINDS
};

#define HOST_METRICS_MAX 32 /* the most metrics of a group */

struct host_metric {
    const char *name;   /* the key */
    const char *unit;   /* of UCUM: "ns", "By", "{operation}" */
    bool is_counter;    /* false: a gauge */
    const char *source; /* the kernel's file, for `blkin host --metrics` */
};

/* The metrics of a kind, in the order of the values. */
struct host_definition {
    const char *name; /* "disk": the group of blkin:metric, and the key of the configuration */
    const char *what; /* a description of one line */
    bool has_instances;
    uint32_t period_ms; /* the default */
    const struct host_metric *metrics;
    size_t count;
};

const struct host_definition *host_definition(enum host_kind kind);
/* Returns HOST_KINDS for an unknown name. */
enum host_kind host_kind_find(const char *name);
/* Returns the index of the named metric; -1: unknown name, or the bit in `present` is 0. */
int host_metric_find(enum host_kind kind, uint64_t present, const char *name, size_t length);

/* The index of each value in its group: CPU_USER, ... */
#define GROUP(group)                       enum {
#define COUNTER(place, name, unit, source) place,
#define GAUGE(place, name, unit, source)   place,
#define END \
    }       \
    ;
#include "tools/sampler/metrics.def"
#undef GROUP
#undef COUNTER
#undef GAUGE
#undef END

#endif
