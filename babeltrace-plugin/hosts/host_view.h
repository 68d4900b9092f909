/*
 * Views of a host's metrics: the meaning of two samples of a group. Tags, tables and sums use the
 * same views.
 *
 * Most views divide a sum of metrics by another sum, or by the interval. For a disk, "busy" is the
 * growth of system.disk.io_time divided by the interval. "wait" is the growth of operation_time
 * divided by the growth of operations.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HOST_VIEW_H
#define BLKIN_HOST_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum host_view_kind {
    HOST_VIEW_GAUGE,   /* gauges of the later sample */
    HOST_VIEW_DELTA,   /* growth of counters */
    HOST_VIEW_RATE,    /* growth per second */
    HOST_VIEW_AVERAGE, /* growth divided by the growth of `by`, or by the interval in ns */
    HOST_VIEW_PERCENT, /* same in percent; is_gauge: of gauges of the later sample */
};

struct host_view {
    const char *group; /* "disk" */
    const char *name;  /* "busy" */
    const char *unit;  /* of the result: "%", "By/s", "ms", "" */
    enum host_view_kind kind;
    const char *metrics; /* names to add up, separated by blanks */
    const char *by;      /* same; NULL: the interval */
    double scale;        /* factor of the result, as from ns to ms; 0: none */
    double most;         /* a larger value is an error of the kernel's ticks; 0: no limit */
    bool is_gauge;
};

/* Returns all views. The views of a group are neighbours, the most useful first. */
const struct host_view *host_views(size_t *count);

/* Returns NULL if there is no such view. */
const struct host_view *host_view_find(const char *group, const char *name);

/* Two samples of a group, and a function that finds a metric in them; -1: not there. */
struct host_interval {
    uint64_t from; /* ns; before `to` */
    uint64_t to;
    const uint64_t *before; /* NULL: there is only one sample */
    const uint64_t *after;
    int (*find)(const void *context, const char *name, size_t length);
    const void *context;
};

/* Returns false if the value is unknown: a metric or the first sample is missing, a counter became
 * smaller (its source began again), or the divisor is 0. */
bool host_view_value(const struct host_view *view, const struct host_interval *interval,
                     double *value);

#endif
