/*
 * Filters the samples of a host before they are recorded, and asks the agent to keep the last
 * seconds when a threshold is crossed.
 *
 * An instance without a rule passes all samples. For an instance with rules,
 *   - `every` limits the rate of samples,
 *   - `changed` and thresholds select samples; one matching rule is enough. The sample before a
 *     selected one passes, too, so that rates cover only the time of the change,
 *   - a sample passes if none has passed for a minute, unless `every` is longer. So readers can
 *     tell a quiet host from a dead host.
 *
 * Counters are cumulative, so a sample that is held back costs resolution, but no count.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_FILTER_H
#define BLKIN_SAMPLER_FILTER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/hosts/host_view.h"
#include "sample.h"

/* ---- rules ----------------------------------------------------------------------------------- */

/*
 * Parses filters of a host's metrics: rules, separated by commas.
 *
 *     disk every 1s                     a sample at most this often
 *     memory.available changed 5%       a sample that differs from the last recorded one by more
 *     disk.busy(vd*) > 90% for 2s       samples while the view has been above (<: below) for 2 s
 *     disk.busy > 95% for 1s keep 10s   asks the agent to keep its last seconds; filters nothing
 *
 * A rule begins with a group, or a view of a group (hosts/host_view.h). Patterns of instances as in
 * glob(7) may follow in parentheses.
 */
#define HOST_RULES_MAX  32
#define HOST_RULE_BYTES 160 /* the text of a rule with its \0 */

enum host_verb { HOST_EVERY, HOST_CHANGED, HOST_ABOVE, HOST_BELOW };

struct host_rule {
    enum host_kind kind;
    enum host_verb verb;
    const struct host_view *view; /* NULL for HOST_EVERY */
    double amount; /* in the view's unit; is_relative: in percent of the last recorded value */
    bool is_relative;
    uint64_t every_ns, for_ns;
    int64_t keep_ms;                 /* 0: the rule filters samples */
    char instances[HOST_NAME_BYTES]; /* "": all */
    char text[HOST_RULE_BYTES];      /* the original text, for messages */
};

struct host_rules {
    struct host_rule list[HOST_RULES_MAX];
    size_t count;
};

/* Returns false with error set, which names the rule and the expected form. */
bool host_rules_parse(struct host_rules *rules, const char *text, struct error *error);

/* ---- filters --------------------------------------------------------------------------------- */

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
