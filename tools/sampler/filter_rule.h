/*
 * Filters of a host's metrics, as people write them: rules with commas between.
 *
 *   disk every 1s                        at most so often
 *   memory.available changed 5%          when it is other than what was recorded last by more than
 * that disk.busy(vd*) > 90% for 2s          while it is above (below: <), and has been for so long
 *   disk.busy > 95% for 1s keep 10s      then the recorder keeps its last seconds; holds nothing
 * back
 *
 * Before a rule's verb is a group, or a view of one (hosts/host_view.h), and in parentheses the
 * instances, as of glob(7); without, all.
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
#define HOST_RULE_BYTES 160 /* of its text, with the \0 */

enum host_verb { HOST_EVERY, HOST_CHANGED, HOST_ABOVE, HOST_BELOW };

struct host_rule {
    enum host_kind kind;
    enum host_verb verb;
    const struct host_view *view; /* NULL: of HOST_EVERY */
    double amount;                /* in the view's unit, or in percent of what was recorded last */
    bool is_relative;
    uint64_t every_ns, for_ns;
    int64_t keep_ms;                 /* 0: it says what is recorded */
    char instances[HOST_NAME_BYTES]; /* "": all */
    char text[HOST_RULE_BYTES];      /* as it was written, for messages */
};

struct host_rules {
    struct host_rule list[HOST_RULES_MAX];
    size_t count;
};

/* Returns false with error set, which names the rule and what was expected. */
bool host_rules_parse(struct host_rules *rules, const char *text, struct error *error);

#endif
