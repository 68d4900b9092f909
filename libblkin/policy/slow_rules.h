/*
 * Which spans are slow: the text form of the rules, for example "osd*:write>20ms, scrub>10s,
 * *>100ms, error, max=50/s", and the rule that matches a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_RULES_H
#define BLKIN_SLOW_RULES_H

#include "policy.h"

#define BLKIN_SLOW_RULES_MAX 32
#define BLKIN_SLOW_NO_RULE   BLKIN_SLOW_RULES_MAX

/* Without "max=": 100 alarms per second. */
#define BLKIN_SLOW_CAP_PERIOD_NS UINT64_C(10000000)
#define BLKIN_SLOW_BURST_NS                                              \
    UINT64_C(1000000000) /* requests that wait for one disk end together \
                          */

/* For messages: the expected form of a text. */
#define BLKIN_SLOW_EXPECTED                                                            \
    "a rule of slow requests, expected some such as osd*:write>20ms, *>100ms, error, " \
    "max=50/s, 32 at most"

struct blkin_slow_rule {
    const char *text;           /* as written */
    const char *service, *name; /* globs */
    uint64_t least_ns;
    bool is_of_error; /* false: a rule of duration */
};

/* Contains pointers into itself: do not copy. */
struct blkin_slow_rules {
    unsigned count;
    uint64_t least_ns;      /* the least duration that matches; UINT64_MAX: none does */
    uint64_t cap_period_ns; /* average interval of alarms */
    struct blkin_slow_rule rules[BLKIN_SLOW_RULES_MAX];
    char texts[BLKIN_POLICY_TEXT_MAX];
    char globs[BLKIN_POLICY_TEXT_MAX];
};

/* Returns NULL, or the wrong part of the text, which lies in rules. "": no rules. */
const char *blkin_slow_parse(struct blkin_slow_rules *rules, const char *text);

/* Returns the index of the first matching rule, or BLKIN_SLOW_NO_RULE. Of the rules of duration,
 * only the first whose globs match counts. */
unsigned blkin_slow_find(const struct blkin_slow_rules *rules, const char *service,
                         const char *name, uint64_t duration_ns, bool has_failed);

#endif
