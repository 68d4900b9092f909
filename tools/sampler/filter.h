/*
 * Filters at the source: which samples of a host are recorded, and when its recorder is asked to
 * keep the last seconds. It stands between host_sample() and who records.
 *
 * A group instance without a rule (filter_rule.h) passes whole. Of one with rules
 *   - `every` lets a sample pass at most so often,
 *   - `changed` and thresholds let one pass when any of them says so, with the one before it, so
 *     that what is computed from two samples is of the time it is about,
 *   - and once a minute one passes all the same: who reads can tell quiet from dead.
 * Values are cumulative, so what is held back costs resolution, never counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_FILTER_H
#define BLKIN_SAMPLER_FILTER_H

#include "filter_rule.h"
#include "sample.h"

struct host_filter_callbacks {
    host_sampled_fn *pass;
    /* A threshold with `keep` was crossed, and the sample that says so has passed. why: a line */
    void (*keep)(void *context, int64_t last_ms, const char *why);
    void *context;
};

struct host_filter_counts {
    uint64_t passed;
    uint64_t held_back;
    uint64_t crossings; /* of thresholds with `keep` */
};

struct host_filter;

/* The rules are copied. Returns NULL when out of memory. */
struct host_filter *host_filter_new(const struct host_rules *rules,
                                    const struct host_filter_callbacks *on);
void host_filter_free(struct host_filter *filter);

/* For host_sample(): the context is the filter. Allocates nothing. */
void host_filter_take(void *filter, const struct host_sample *sample);

struct host_filter_counts host_filter_counts(const struct host_filter *filter);

#endif
