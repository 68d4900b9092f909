/*
 * The groups of metrics of a host, and where each value of a group stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_DEFINITIONS_H
#define BLKIN_SAMPLER_DEFINITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#define HOST_METRICS_MAX 32 /* of a group; all values are in arrays of so many */

struct host_metric {
    const char *name;   /* the key */
    const char *unit;   /* by UCUM: "ns", "By", "{operation}" */
    bool is_counter;    /* only grows; else a gauge */
    const char *source; /* where it is from, for --list and the pages */
};

/* What there is of a kind, in the order of the values: always the same. */
struct host_definition {
    const char *name; /* "disk": the group of blkin:metric, and the key of the configuration */
    const char *what; /* in a line */
    bool has_instances;
    uint32_t period_ms; /* unless configured */
    const struct host_metric *metrics;
    size_t count;
};

const struct host_definition *host_definition(enum host_kind kind);
/* HOST_KINDS: there is none of this name. */
enum host_kind host_kind_find(const char *name);
/* The place of the metric of this name; -1: there is none, or its bit in present is 0. */
int host_metric_find(enum host_kind kind, uint64_t present, const char *name, size_t length);

/* The place of each value in its group: CPU_USER, ... */
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
