/*
 * The groups of metrics of a host, and where each value of a group stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_DEFINITIONS_H
#define BLKIN_TOOLS_HOST_DEFINITIONS_H

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
    const char *name;   /* the key; what it is called as OTLP: points/otlp_names.h */
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

/* in the order of /proc/stat */
enum { CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL };

enum {
    MEMORY_TOTAL,
    MEMORY_AVAILABLE,
    MEMORY_FREE,
    MEMORY_BUFFERS,
    MEMORY_CACHED,
    MEMORY_DIRTY,
    MEMORY_WRITEBACK,
    MEMORY_SWAP_USED,
    MEMORY_SWAP_FREE,
    MEMORY_SWAPPED_IN,
    MEMORY_SWAPPED_OUT,
    MEMORY_MAJOR_FAULTS,
    MEMORY_STALLS,
    MEMORY_OOM_KILLS,
};

/* "some" and "full" of each file */
enum { PRESSURE_CPU, PRESSURE_IO = 2, PRESSURE_MEMORY = 4, PRESSURES = 6 };

enum {
    QUEUE_RUNNING,
    QUEUE_BLOCKED,
    QUEUE_SWITCHES,
    QUEUE_CREATED,
    QUEUE_LOAD_1M,
    QUEUE_LOAD_5M,
    QUEUE_LOAD_15M,
};

enum {
    DISK_READS,
    DISK_WRITES,
    DISK_READ_BYTES,
    DISK_WRITTEN_BYTES,
    DISK_READ_TIME,
    DISK_WRITE_TIME,
    DISK_IO_TIME,
    DISK_WEIGHTED_TIME,
    DISK_PENDING,
    DISK_READS_MERGED,
    DISK_WRITES_MERGED,
    DISK_DISCARDS,
    DISK_DISCARD_TIME,
    DISK_FLUSHES,
    DISK_FLUSH_TIME,
};

enum {
    NETWORK_RECEIVED_BYTES,
    NETWORK_SENT_BYTES,
    NETWORK_RECEIVED,
    NETWORK_SENT,
    NETWORK_RECEIVE_ERRORS,
    NETWORK_SEND_ERRORS,
    NETWORK_RECEIVE_DROPPED,
    NETWORK_SEND_DROPPED,
};

enum {
    TCP_RETRANSMITTED,
    TCP_SENT,
    TCP_RECEIVED,
    TCP_RECEIVE_ERRORS,
    TCP_RESETS_SENT,
    TCP_ESTABLISHED,
    TCP_OPENED,
    TCP_ACCEPTED,
    TCP_FAILED,
    TCP_RESET,
};

enum {
    PROCESS_USER,
    PROCESS_SYSTEM,
    PROCESS_RESIDENT,
    PROCESS_VIRTUAL,
    PROCESS_THREADS,
    PROCESS_DESCRIPTORS,
    PROCESS_MINOR_FAULTS,
    PROCESS_MAJOR_FAULTS,
    PROCESS_DISK_READ,
    PROCESS_DISK_WRITTEN,
    PROCESS_READ,
    PROCESS_WRITTEN,
    PROCESS_READ_CALLS,
    PROCESS_WRITE_CALLS,
};

enum {
    CGROUP_USER,
    CGROUP_SYSTEM,
    CGROUP_THROTTLED,
    CGROUP_MEMORY,
    CGROUP_PROCESSES,
    CGROUP_READ_BYTES,
    CGROUP_WRITTEN_BYTES,
    CGROUP_READS,
    CGROUP_WRITES,
    CGROUP_PRESSURE, /* the first of PRESSURES */
};

#endif
