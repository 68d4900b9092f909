/*
 * Samples of hosts, in their order: what each says about the time since the one before, and the
 * latest of all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_SAMPLES_H
#define BLKIN_ANALYSIS_SAMPLES_H

#include "babeltrace-plugin/base/table.h"
#include "fleet.h"
#include "host_history.h"

#define SAMPLE_METRICS_MAX 64 /* of a group: as many bits as `present` has */

/* One sample of a group's instance. */
struct sample {
    struct text host;
    struct text group;
    struct text instance;
    int64_t time_ns; /* since 1970 */
    uint32_t period_ms;
    size_t count; /* SAMPLE_METRICS_MAX at most, as are those that are there */
    const struct sample_metric *metrics;
    const uint64_t *values;
    uint64_t present; /* bit i: values[i] is there */
};

/* Of a host, a group and an instance. */
struct sample_series {
    char *host, *group, *instance;
    struct sample_metric *metrics; /* texts are its own */
    size_t count;
    uint64_t *values; /* of the latest sample, as are the next two */
    int64_t time_ns;
    uint64_t present;
    uint32_t period_ms;
    uint64_t *before;  /* of the one before that */
    int64_t before_ns; /* 0: there is none */
    uint64_t before_present;
    size_t bytes; /* of all of it */
    struct table_link in_table;
};

/* Texts live until gone() is called. */
typedef void samples_point_fn(void *context, const struct fleet_point *point);

struct samples;

/* Of series of max_bytes in all. gone: called before texts of points that were given out go; NULL:
 * nobody keeps them. Returns NULL when out of memory. */
struct samples *samples_new(uint64_t max_bytes, samples_point_fn *point, void (*gone)(void *),
                            void *context);
void samples_free(struct samples *table); /* NULL is allowed */

/* Calls for each metric. Returns false when out of memory: the sample is left out. */
bool samples_take(struct samples *table, const struct sample *sample);

/* Does the sample's time go so far back that the host's clock was set? Then it is the series' first
 * sample: nobody knows how long ago the sample before was. */
bool samples_is_set_back(const struct sample_series *series, const struct sample *sample);

/* Those without a sample since then are forgotten. */
void samples_forget(struct samples *table, int64_t before_ns);

/* NULL: there is none of these names. */
struct sample_series *samples_find(const struct samples *table, struct text host, struct text group,
                                   struct text instance);

/* All series, for table_for_each(): `in_table` is their link. */
const struct table *samples_all(const struct samples *table);

/* Samples of series beyond max_bytes, or without a right name: they were left out. */
uint64_t samples_no_room(const struct samples *table);

#endif
