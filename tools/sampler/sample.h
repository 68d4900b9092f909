/*
 * What a host does, as its kernel counts it: read from files of /proc and /sys that are kept open.
 *
 * A group is what is read together: of the whole host (cpu, memory, ...), or one of several
 * instances (the disk "vda", the process "redis-server[123]"). Its values are raw: counters as the
 * kernel has them since it began, converted to the unit, and gauges. What happened in between is
 * computed by who reads two samples (host_view.h).
 *
 * One thread. After host_open() nothing is allocated, and a sample calls nothing but open(2),
 * pread(2), fstat(2), getdents64(2) and close(2). Whatever a file holds is taken: what is not
 * understood is counted, and its metrics are not there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_SAMPLE_H
#define BLKIN_SAMPLER_SAMPLE_H

#include "babeltrace-plugin/base/error.h"
#include "definitions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_SLOTS      1024 /* instances of all groups at a time; more are counted */
#define HOST_NAME_BYTES 192  /* of an instance, with its \0 */

#define HOST_PERIOD_MIN_MS 100
#define HOST_PERIOD_MAX_MS 300000

struct host_wanted {
    uint32_t period_ms; /* 0: not sampled */
    /*
     * Which instances: patterns as of glob(7) with commas between; one that begins with ! takes
     * away. NULL or "": those that matter. Of
     *   cpu      nothing (all of them as one), or "each": cpu0, cpu1, ... too
     *   disk     names of disks and partitions; those that matter have done something
     *   network  names of interfaces
     *   process  NAME (of the command), pid:NUMBER, unit:NAME.service; those that matter: none
     *   cgroup   paths below the root of cgroups: "system.slice/redis.service", "*.slice"; those
     *            that matter: none
     */
    const char *instances;
};

struct host_config {
    const char *root; /* the folder that proc and sys are in; NULL: "/" */
    struct host_wanted wanted[HOST_KINDS];
};

/* Every kind at its own period. */
void host_config_default(struct host_config *config);

/* One instance of a group, just read. Nothing of it outlives the call, but `metrics`. */
struct host_sample {
    enum host_kind kind;
    const char *group;    /* its name */
    const char *instance; /* "" if there is but one; any bytes */
    uint64_t monotonic;   /* ns, when it was read */
    uint32_t period_ms;
    uint32_t slot; /* of the instance, below HOST_SLOTS; one that ended leaves its to another */
    uint64_t generation; /* of the slot: another number is another instance */
    const struct host_metric *metrics;
    const uint64_t *values;
    size_t count;     /* of metrics and values */
    uint64_t present; /* bit i: values[i] is there; the others the kernel does not have */
};

static inline bool host_has(const struct host_sample *sample, size_t i)
{
    return i < sample->count && (sample->present >> i & 1);
}

typedef void host_sampled_fn(void *context, const struct host_sample *sample);

/* All since host_open(). */
struct host_counts {
    uint64_t samples;        /* given to the callback */
    uint64_t skipped;        /* times that were due, and too late */
    uint64_t unreadable;     /* files that could not be read, but those of ended processes */
    uint64_t not_understood; /* lines and files that are not as the kernel writes them */
    uint64_t ended;          /* instances that went */
    uint64_t no_room;        /* instances that found no slot, or have too long a name */
};

struct host;

/* Returns NULL with error set: a pattern that means nothing, no /proc at all, out of memory. */
struct host *host_open(const struct host_config *config, struct error *error);
void host_close(struct host *host);

/* CLOCK_MONOTONIC in ns, of the next sample. UINT64_MAX: never. */
uint64_t host_next(const struct host *host);

/* Reads the kinds that are due at `now` (CLOCK_MONOTONIC, ns), calls for each instance. */
void host_sample(struct host *host, uint64_t now, host_sampled_fn *sampled, void *context);

/* Reads all kinds that are wanted, due or not; the next times are as before. */
void host_sample_all(struct host *host, host_sampled_fn *sampled, void *context);

struct host_counts host_counts(const struct host *host);

#endif
