/*
 * Reads a host's metrics from files of /proc and /sys, which stay open.
 *
 * A group of metrics is of the whole host (cpu, memory, ...) or of one instance (the disk "vda",
 * the process "redis-server[123]"). Values are raw: gauges, and the kernel's counters, converted to
 * the unit. Readers compute rates from two samples (host_view.h).
 *
 * For one thread. After host_open(), the reader allocates nothing, and calls only open(2),
 * pread(2), fstat(2), lseek(2), getdents64(2) and close(2). The files may contain anything: the
 * reader counts unknown lines, and leaves out their metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_SAMPLE_H
#define BLKIN_SAMPLER_SAMPLE_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the groups of metrics, and the index of each value in its group ------------------------- */

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
#define COUNTER(index, name, unit, source) index,
#define GAUGE(index, name, unit, source)   index,
#define END \
    }       \
    ;
#include "tools/sampler/metrics.def"
#undef GROUP
#undef COUNTER
#undef GAUGE
#undef END

/* ---- samples --------------------------------------------------------------------------------- */

#define HOST_SLOTS      1024 /* instances of all groups; further instances are only counted */
#define HOST_NAME_BYTES 192  /* an instance's name with its \0 */

#define HOST_PERIOD_MIN_MS 100
#define HOST_PERIOD_MAX_MS 300000

struct host_wanted {
    uint32_t period_ms; /* 0: not sampled */
    /*
     * Patterns as in glob(7), separated by commas; a pattern after ! excludes names.
     *   cpu      "": all CPUs together; "each": also cpu0, cpu1, ...
     *   disk     disks and partitions; NULL or "": those with any operation
     *   network  interfaces; NULL or "": those with any packet, error or drop
     *   process  NAME of the command, pid:NUMBER, unit:NAME.service; NULL or "": none
     *   cgroup   paths below the root of cgroups, such as "*.slice"; NULL or "": none
     */
    const char *instances;
};

struct host_config {
    const char *root; /* the folder with proc and sys; NULL: "/" */
    struct host_wanted wanted[HOST_KINDS];
};

/* Sets the default period of each kind. */
void host_config_default(struct host_config *config);

/* A sample of one instance of a group. Only `metrics` outlives the callback. */
struct host_sample {
    enum host_kind kind;
    const char *group;
    const char *instance; /* any bytes; "": the group has no instances */
    uint64_t monotonic;   /* the time of the read in ns */
    uint32_t period_ms;
    uint32_t slot;       /* below HOST_SLOTS; reused after the instance has ended */
    uint64_t generation; /* differs for each instance that has this slot */
    const struct host_metric *metrics;
    const uint64_t *values;
    size_t count;     /* metrics, and values */
    uint64_t present; /* bit i: values[i] is known */
};

static inline bool host_has(const struct host_sample *sample, size_t i)
{
    return i < sample->count && (sample->present >> i & 1);
}

typedef void host_sampled_fn(void *context, const struct host_sample *sample);

/* Counters since host_open(). */
struct host_counts {
    uint64_t samples;        /* passed to the callback */
    uint64_t skipped;        /* samples that were too late and left out */
    uint64_t unreadable;     /* failed reads of files of the whole host */
    uint64_t not_understood; /* lines and files in an unknown form */
    uint64_t ended;          /* instances that disappeared */
    uint64_t no_room;        /* instances without a slot, or with a too long name */
};

struct host_reader;

/* Returns NULL with error set: a malformed pattern, no /proc, or out of memory. */
struct host_reader *host_open(const struct host_config *config, struct error *error);
void host_close(struct host_reader *host);

/* Returns the time of the next sample, CLOCK_MONOTONIC in ns. UINT64_MAX: never. */
uint64_t host_next(const struct host_reader *host);

/* Reads the kinds that are due at `now` (CLOCK_MONOTONIC, ns), and calls sampled() for each
 * instance. */
void host_sample(struct host_reader *host, uint64_t now, host_sampled_fn *sampled, void *context);

/* Reads all wanted kinds at once, and keeps their schedule. */
void host_sample_all(struct host_reader *host, host_sampled_fn *sampled, void *context);

struct host_counts host_counts(const struct host_reader *host);

#endif
