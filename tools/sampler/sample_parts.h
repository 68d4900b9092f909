/*
 * What the readers of the groups share. sample.c has the instances and the times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_PARTS_H
#define BLKIN_SAMPLER_PARTS_H

#include "definitions.h"
#include "lines.h"
#include "patterns.h"
#include "sample.h"

#include <time.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

#define SLOT_FILES 9  /* that an instance has of its own */
#define SLOT_KEPT  12 /* values of the last sample */
#define PIDS_MAX   32768
#define LIST_BYTES 4096 /* of a folder, at a time */

enum file {
    FILE_STAT,
    FILE_LOADAVG,
    FILE_MEMINFO,
    FILE_VMSTAT,
    FILE_PRESSURE_CPU,
    FILE_PRESSURE_IO,
    FILE_PRESSURE_MEMORY,
    FILE_DISKSTATS,
    FILE_NET_DEV,
    FILE_NET_SNMP,
    FILES
};

/* Of control groups. */
enum cgroup_tree {
    CGROUP_V2,
    CGROUP_V1_CPUACCT,
    CGROUP_V1_CPU, /* mostly the same as cpuacct */
    CGROUP_V1_MEMORY,
    CGROUP_V1_PIDS,
    CGROUP_V1_BLKIO,
    CGROUP_V1_SYSTEMD, /* without a controller: where systemd has each unit */
    CGROUP_TREES
};

struct slot {
    bool is_used;
    uint32_t pid;        /* of a process */
    uint64_t generation; /* 0: never used */
    uint64_t seen;       /* the host's tick */
    uint64_t kept[SLOT_KEPT];
    uint64_t counted_at; /* a process's descriptors */
    int fds[SLOT_FILES];
    char name[HOST_NAME_BYTES];
};

/* Processes of the last look at /proc, in its order: pid << 2 | how many looks it is there for. */
struct pids {
    size_t count;
    uint32_t list[PIDS_MAX];
};

struct host {
    uint64_t tick;               /* of host_sample() */
    uint64_t period[HOST_KINDS]; /* ns; 0: not wanted */
    uint64_t next[HOST_KINDS];
    struct patterns patterns[HOST_KINDS];
    int proc;                  /* a folder */
    int cgroups[CGROUP_TREES]; /* folders; -1: there is none */
    bool is_proc;              /* the kernel's own */
    int files[FILES];
    struct lines lines;
    /* by place in the file: the slot that was there last time */
    uint16_t order[HOST_KINDS][HOST_SLOTS];
    size_t used[HOST_KINDS]; /* slots that are used: the first of the kind's are taken first */
    int tcp_metrics[HOST_METRICS_MAX]; /* of the columns of Tcp in /proc/net/snmp; -1: none */
    size_t tcp_count;                  /* 0: not looked at yet */
    size_t vmstat_ask; /* bytes of /proc/vmstat that hold all that is needed of it; 0: not known */
    struct {
        uint64_t tick;
        uint64_t monotonic;
        uint64_t values[QUEUE_CREATED + 1];
        uint64_t present;
    } stat; /* of the run queue, in the same file as the processors */
    uint64_t ticks_per_s;
    uint64_t page_bytes;
    uint64_t find_at; /* when processes and groups are looked for again */
    uint64_t find_soonest;
    uint64_t find_turn;
    bool has_ended; /* one of them ended, so there may be another */
    bool finds;     /* any are wanted */
    struct pids pids[2];
    struct host_counts counts;
    struct slot slots[HOST_SLOTS];
};

/* A group that is being read. */
struct reading {
    struct host *host;
    enum host_kind kind;
    uint64_t monotonic;
    size_t position; /* the next instance's, in the file */
    size_t seen;     /* instances */
    uint64_t values[HOST_METRICS_MAX];
    uint64_t present;
    host_sampled_fn *sampled;
    void *context;
};

/* The instance's, found or new; NULL: not wanted, no room, or it was there before in this file. */
struct slot *slot_find(struct reading *reading, struct piece name, bool matters);
/* Of a group that has but one. */
struct slot *slot_single(struct reading *reading);
/* NULL: no room, counted. Its files are -1. */
struct slot *slot_take(struct host *host, enum host_kind kind, struct piece name);
void slot_release(struct host *host, enum host_kind kind, struct slot *slot);

/* Those that are used; the one that is given may be released. */
struct each {
    size_t at;
    size_t left;
};
struct each each_of(const struct host *host, enum host_kind kind);
struct slot *each_next(struct host *host, struct each *each); /* NULL: no more */

/* Those of the kind that this reading did not see ended. */
void slots_sweep(const struct reading *reading);

static inline void put_value(struct reading *reading, size_t i, uint64_t value)
{
    reading->values[i] = value;
    reading->present |= UINT64_C(1) << i;
}

/* Gives what was put to the callback, and begins anew. NULL: nobody wants it. */
void give(struct reading *reading, const struct slot *slot);

/* Begins with a file of the host. Returns false if it is not there. */
bool begin_file(struct host *host, enum file file, size_t record);
/* Counts what was wrong with the file that was just read. Returns false if it could not be read. */
bool end_file(struct host *host);

void read_cpu(struct reading *reading);
void read_memory(struct reading *reading);
void read_pressure(struct reading *reading);
void read_run_queue(struct reading *reading);
void read_disks(struct reading *reading);
void read_networks(struct reading *reading);
void read_tcp(struct reading *reading);
void read_processes(struct reading *reading);
void read_cgroups(struct reading *reading);

/* A line that begins with a name, and goes on with a number. */
struct field {
    const char *name;
    size_t length;
    size_t i;      /* of the value */
    uint64_t unit; /* that the number is of */
};
#define FIELD(name, i, unit)            \
    {                                   \
        name, sizeof(name) - 1, i, unit \
    }
#define FIELDS(fields) fields, sizeof(fields) / sizeof((fields)[0])

/* Of the file whose lines have begun, until each of these was there. */
void read_named_fields(struct reading *reading, const struct field *fields, size_t count);

/* Of a pressure file whose lines have begun: values first and first + 1. */
void read_pressure_lines(struct reading *reading, size_t first);

/* Looks which processes and groups there are. */
void find_processes(struct host *host);
void find_cgroups(struct host *host);
/* A process that is wanted. */
void process_add(struct host *host, uint32_t pid);

/* Calls for each entry of a folder until that returns false. name is ended by \0. */
typedef bool entry_fn(void *context, int folder, const char *name, unsigned char type);
void entries(int folder, entry_fn *entry, void *context);

void cgroups_open(struct host *host, int folder); /* that sys is in */
void cgroups_close(struct host *host);

/* openat(2) for reading; never waits, as it would for a pipe. */
int open_at(int folder, const char *path, bool is_folder);

static inline uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* What does not fit stays the most that does. */
static inline uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
