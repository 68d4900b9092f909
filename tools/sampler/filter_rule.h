/*
 * Parses filters of a host's metrics: rules, separated by commas.
 *
 *     disk every 1s                     a sample at most this often
 *     memory.available changed 5%       a sample that differs from the last recorded one by more
 *     disk.busy(vd*) > 90% for 2s       samples while the view is above (<: below), and has been so
 *     disk.busy > 95% for 1s keep 10s   asks the agent to keep its last seconds; filters nothing
 *
 * A rule begins with a group, or a view of a group (hosts/host_view.h). Patterns of instances may
 * follow in parentheses, as of glob(7).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_FILTER_RULE_H
#define BLKIN_SAMPLER_FILTER_RULE_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/hosts/host_view.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
