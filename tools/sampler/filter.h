/*
 * Filters the samples of a host before they are recorded, and asks the agent to keep the last
 * seconds when a threshold is crossed.
 *
 * An instance without a rule (filter_rule.h) passes all samples. For an instance with rules,
 *   - `every` limits the rate of samples,
 *   - `changed` and thresholds select samples; one matching rule is enough. The sample before a
 *     selected one passes, too, so that rates cover only the time of the change,
 *   - one sample a minute passes in any case, so that readers can tell a quiet host from a dead
 * one. Counters are cumulative, so a sample that is held back costs resolution, but no count.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_FILTER_H
#define BLKIN_SAMPLER_FILTER_H

#include "filter_rule.h"
#include "sample.h"

struct host_filter_callbacks {
    host_sampled_fn *pass;
    /* A threshold with `keep` was crossed; its sample has passed. why: a line of text */
    void (*keep)(void *context, int64_t last_ms, const char *why);
    void *context;
};

struct host_filter_counts {
    uint64_t passed;
    uint64_t held_back;
    uint64_t crossings; /* of thresholds with `keep` */
};

struct host_filter;

/* Copies the rules. Returns NULL when out of memory. */
struct host_filter *host_filter_new(const struct host_rules *rules,
                                    const struct host_filter_callbacks *on);
void host_filter_free(struct host_filter *filter);

/* A host_sampled_fn; the context is the filter. Allocates nothing. */
void host_filter_take(void *filter, const struct host_sample *sample);

struct host_filter_counts host_filter_counts(const struct host_filter *filter);

#endif
