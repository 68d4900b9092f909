/*
 * Rules of slow spans: parses their text, for example "osd*:write>20ms, scrub>10s, *>100ms, error,
 * max=50/s", and finds the rule that matches a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_RULES_H
#define BLKIN_SLOW_RULES_H

#include "policy.h"

#define BLKIN_SLOW_RULES_MAX 32
#define BLKIN_SLOW_NO_RULE   BLKIN_SLOW_RULES_MAX

/* The default of "max=": 100 alarms per second. The burst is for requests that wait for one disk:
 * they end at the same time. */
#define BLKIN_SLOW_CAP_PERIOD_NS UINT64_C(10000000)
#define BLKIN_SLOW_BURST_NS      UINT64_C(1000000000)

/* For messages: the expected form of a text. */
#define BLKIN_SLOW_EXPECTED                                                            \
    "a rule of slow requests, expected some such as osd*:write>20ms, *>100ms, error, " \
    "max=50/s, 32 at most"

struct blkin_slow_rule {
    const char *text;           /* the rule's part of the text, unchanged */
    const char *service, *name; /* globs */
    uint64_t least_ns;          /* of a rule of duration: the least duration that matches */
    bool is_of_error;           /* false: a rule of duration */
};

/* Contains pointers into itself, so it must not be copied. */
struct blkin_slow_rules {
    unsigned count;
    uint64_t least_ns;      /* the least duration that matches; UINT64_MAX: no rule of duration */
    uint64_t cap_period_ns; /* average interval of alarms */
    struct blkin_slow_rule rules[BLKIN_SLOW_RULES_MAX];
    char texts[BLKIN_POLICY_TEXT_MAX];
    char globs[BLKIN_POLICY_TEXT_MAX];
};

/* Parses the text; "": no rules. Returns NULL, or the wrong part, which is in `rules` or `text`. */
const char *blkin_slow_parse(struct blkin_slow_rules *rules, const char *text);

/* Returns the index of the first matching rule, or BLKIN_SLOW_NO_RULE. Of the rules of duration,
 * only the first whose globs match counts. */
unsigned blkin_slow_find(const struct blkin_slow_rules *rules, const char *service,
                         const char *name, uint64_t duration_ns, bool has_failed);

#endif
