/*
 * Samples of hosts, in their order: what each says about the time since the one before, and the
 * latest of all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_HOST_SERIES_H
#define BLKIN_ANALYSIS_HOST_SERIES_H

#include "fleet.h"

#define SERIES_METRICS_MAX 64 /* of a group: as many bits as `present` has */

struct series_metric {
    struct text name;
    struct text unit;
    bool is_counter;
};

/* One sample of a group's instance. */
struct series_sample {
    struct text host;
    struct text group;
    struct text instance;
    int64_t time_ns; /* since 1970 */
    uint32_t period_ms;
    size_t count; /* SERIES_METRICS_MAX at most, as are those that are there */
    const struct series_metric *metrics;
    const uint64_t *values;
    uint64_t present; /* bit i: values[i] is there */
};

/* Of a host, a group and an instance. */
struct series {
    char *host, *group, *instance;
    struct series_metric *metrics; /* texts are its own */
    size_t count;
    uint64_t *values; /* of the latest sample, as are the next two */
    int64_t time_ns;
    uint64_t present;
    uint32_t period_ms;
    uint64_t *before; /* of the one before that */
    int64_t before_ns; /* 0: there is none */
    uint64_t before_present;
    uint64_t hash; /* the table's, as is next */
    struct series *next;
};

struct series_counts {
    uint64_t samples;
    uint64_t points; /* that were given out */
    uint64_t first;  /* samples that nothing was before */
    uint64_t begun_anew; /* counters that became smaller: what was meanwhile is not known */
    uint64_t not_later;  /* samples of no later time than the one before: left out */
    uint64_t no_room;    /* samples of series beyond `max` */
    uint64_t series;
    uint64_t bytes;
};

/* Texts live until gone() is called. */
typedef void series_point_fn(void *context, const struct fleet_point *point);

struct series_table;

/* Of max series. gone: called before texts of points that were given out go; NULL: nobody keeps
 * them. Returns NULL when out of memory. */
struct series_table *series_table_new(size_t max, series_point_fn *point, void (*gone)(void *),
                                      void *context);
void series_table_free(struct series_table *table); /* NULL is allowed */

/* Calls for each metric. Returns false when out of memory: the sample is left out. */
bool series_take(struct series_table *table, const struct series_sample *sample);

/* Those without a sample since then are forgotten. */
void series_forget(struct series_table *table, int64_t before_ns);

/* In no order. */
const struct series *series_first(const struct series_table *table);
const struct series *series_next(const struct series_table *table, const struct series *series);
const struct series_counts *series_counts(const struct series_table *table);

#endif
