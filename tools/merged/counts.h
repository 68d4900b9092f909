/*
 * The account of a worker: each span that was read has one outcome, or is open.
 *
 *     in + taken over = counted + late + over + invalid + handed over + open, always
 *
 * It is the same over all workers: what one has handed over, or had open when it was killed, others
 * have taken over, and is in `in` once. So is what is in the deltas (deltas.h): they are committed
 * together with what was read.
 *
 * One table has all counters: the worker's page, its last line and the deltas are made from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_COUNTS_H
#define BLKIN_TOOLS_WORK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct work_counts {
    uint64_t spans_in;          /* read for the first time by any worker */
    uint64_t spans_taken_over;  /* of traces that were open when another worker had the partition */
    uint64_t spans_counted;     /* with their traces */
    uint64_t spans_late;        /* after their trace was closed: in rates and durations only */
    uint64_t spans_over;        /* more than a trace may have: in no statistics */
    uint64_t spans_invalid;     /* without trace id or id */
    uint64_t spans_handed_over; /* of open traces of a partition that was given away */
    uint64_t spans_open;

    uint64_t spans_read_back; /* what another worker has counted: read to know which traces */
    uint64_t spans_kept;
    uint64_t spans_too_large; /* of kept traces, but no message takes them */
    uint64_t traces_closed;
    uint64_t traces_incomplete; /* of these: no root, or parents missing */
    uint64_t traces_early;      /* of these: closed before their time, for want of memory */
    uint64_t traces_kept;
    uint64_t traces_open;
    uint64_t traces_forgotten; /* closed ones, before their time: what is late of them is a trace */
    uint64_t messages;
    uint64_t bytes;
    uint64_t messages_broken;
    uint64_t messages_skewed; /* their time is before that of the message before, or to come */
    uint64_t host_messages;
    uint64_t host_points;         /* metrics of hosts between two samples, each is in the sums */
    uint64_t host_points_refused; /* not of delta temporality, or of no time: in no sum */
    uint64_t host_points_shifted; /* of a host whose clock is ahead */
    uint64_t host_messages_broken;
    uint64_t offsets_missing; /* not in the log: retention, marks of transactional writers, or an
                                 end that a broker has lost */
    uint64_t partitions;
    uint64_t rebalances;
    uint64_t transactions;
    uint64_t open_bytes; /* of memory for messages of open traces, and for all traces */
    double busy;         /* share of the time that the worker has worked: 0 to 1 */
    double behind_s;     /* how old the last message was when it was read */
};

enum work_counter_kind {
    WORK_COUNTER, /* never falls; in deltas: what it has grown by */
    WORK_GAUGE,   /* as it is now */
    WORK_RATIO    /* the same, a double */
};

struct work_counter {
    const char *name; /* OTLP: blkin.work.NAME; Prometheus: blkin_work_NAME, of a counter _total */
    enum work_counter_kind kind;
    size_t offset; /* in struct work_counts */
    const char *help;
};

extern const struct work_counter work_counters[];
extern const size_t work_counters_count;

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts);
double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts);

/* Counters are added up, gauges are the later ones. */
void work_counts_add(struct work_counts *counts, const struct work_counts *delta);

/* What counters have grown by since `before`; gauges as they are now. */
struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before);

#endif
