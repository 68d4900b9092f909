/*
 * Views of a host's metrics: what two samples of a group say about the time between them. Used by
 * who prints, tags and adds up, so that they all mean the same.
 *
 * A view is (sum of metrics) / (sum of others): "busy" of a disk is the growth of
 * system.disk.io_time by the interval, "wait" the growth of operation_time by that of operations.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HOST_VIEW_H
#define BLKIN_HOST_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum host_view_kind {
    HOST_VIEW_BASIC,   /* gauges, of the later sample */
    HOST_VIEW_DELTA,   /* growth of counters */
    HOST_VIEW_RATE,    /* growth by second */
    HOST_VIEW_AVERAGE, /* growth by that of others, or of ns by the interval */
    HOST_VIEW_PERCENT, /* the same in percent; is_gauge: of gauges of the later sample */
};

struct host_view {
    const char *group; /* "disk" */
    const char *name;  /* "busy" */
    const char *unit;  /* of the result: "%", "By/s", "ms", "" */
    enum host_view_kind kind;
    const char *metrics; /* names with blanks between, which are added up */
    const char *by;      /* the same; NULL: the interval */
    double scale;        /* the result is multiplied with it, as ns to ms; 0: not */
    double most;         /* what is more is because of the kernel's ticks; 0: anything may be */
    bool is_gauge;
};

/* All of them; those of a group are beside each other, the most telling first. */
const struct host_view *host_views(size_t *count);
/* NULL: there is none. */
const struct host_view *host_view_find(const char *group, const char *name);

/* Two samples of a group, and how to find a metric in them: -1 if it is not there. */
struct host_interval {
    uint64_t from; /* ns; before `to` */
    uint64_t to;
    const uint64_t *before; /* NULL: there is but one sample */
    const uint64_t *after;
    int (*find)(const void *context, const char *name, size_t length);
    const void *context;
};

/*
 * Returns false if it is not known: a metric is not there, a counter became smaller (its source
 * began anew), nothing happened to divide by.
 */
bool host_view_value(const struct host_view *view, const struct host_interval *interval,
                     double *value);

#endif
