/*
 * Finds slow and failed spans of SDKs by the rules of programs with libblkin
 * (tools/base/host_rules.h), with the same limit of alarms.
 *
 * A rule of errors is for all spans. A rule of durations is for spans at which a request enters a
 * process (server, consumer) or begins (no parent): they contain the other spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SLOW_SPANS_H
#define BLKIN_TOOLS_SLOW_SPANS_H

#include "libblkin/policy/slow_rules.h"
#include "otlp_decode.h"

#include <jansson.h>

/* A slow or failed span. The text lives until the callback returns. */
struct otlp_alarm {
    uint64_t trace_id_high, trace_id; /* both 0: the alarm only reports `dropped` */
    uint64_t duration_ns;
    uint32_t dropped; /* alarms of this rule that limits suppressed since its last alarm */
    struct text why;  /* the rule */
};

typedef void otlp_alarm_fn(void *context, const struct otlp_alarm *alarm);

/* The owner sets alarm and context; the rest is 0. */
struct slow_spans {
    otlp_alarm_fn *alarm;
    void *context;
    struct blkin_slow_rules rules;
    uint32_t held_back[BLKIN_SLOW_RULES_MAX]; /* suppressed alarms of a rule, not yet reported */
};

/* Reads changed rules, and reports suppressed alarms by alarms without ids. The owner calls this
 * function at first, then about once a second. */
void slow_spans_refresh(struct slow_spans *slow);

/* Returns the first rule that fits, or BLKIN_SLOW_NO_RULE. */
unsigned slow_spans_find(const struct slow_spans *slow, const struct otlp_origin *origin,
                         const struct otlp_span *span);

/* Gives an alarm of the rule. Returns false if the limit suppresses the alarm: then the rule's next
 * alarm counts it in `dropped`. */
bool slow_spans_give(struct slow_spans *slow, unsigned rule, struct blkin_rate *limit,
                     const struct otlp_span *span);

/* Returns {"rules": [...], "wrong": ...}; NULL: out of memory. */
json_t *slow_spans_json(const struct slow_spans *slow);

#endif
