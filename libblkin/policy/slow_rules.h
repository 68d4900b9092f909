/*
 * Which spans are slow: the text form of the rules, and the rule that fits a span.
 *
 *     osd*:write>20ms, scrub>10s, *>100ms, error, max=50/s
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_RULES_H
#define BLKIN_SLOW_RULES_H

#include "policy.h"

#define BLKIN_SLOW_RULES_MAX 32
#define BLKIN_SLOW_NO_RULE   BLKIN_SLOW_RULES_MAX

/* Without "max=" in the rules: 100 alarms per second. */
#define BLKIN_SLOW_CAP_PERIOD_NS UINT64_C(10000000)
#define BLKIN_SLOW_BURST_NS      UINT64_C(1000000000) /* what waits for one disk ends all at once */

/* What a text of rules should have been, for people. */
#define BLKIN_SLOW_EXPECTED                                                            \
    "a rule of slow requests, expected some such as osd*:write>20ms, *>100ms, error, " \
    "max=50/s, 32 at most"

struct blkin_slow_rule {
    const char *text;           /* as it was written */
    const char *service, *name; /* globs */
    uint64_t least_ns;
    bool is_of_error; /* else, of duration */
};

/* Has pointers into itself: not to be copied. */
struct blkin_slow_rules {
    unsigned count;
    uint64_t least_ns;      /* no duration below that fits; UINT64_MAX: none does */
    uint64_t cap_period_ns; /* of one alarm, on average */
    struct blkin_slow_rule rules[BLKIN_SLOW_RULES_MAX];
    char texts[BLKIN_POLICY_TEXT_MAX];
    char globs[BLKIN_POLICY_TEXT_MAX];
};

/* Returns NULL, or the part of the text that is wrong, which lies in rules. "": no rules. */
const char *blkin_slow_parse(struct blkin_slow_rules *rules, const char *text);

/*
 * The number of the rule that fits, or BLKIN_SLOW_NO_RULE. They are gone through in their order; of
 * those of duration the first whose globs fit decides.
 */
unsigned blkin_slow_find(const struct blkin_slow_rules *rules, const char *service,
                         const char *name, uint64_t duration_ns, bool has_failed);

#endif
