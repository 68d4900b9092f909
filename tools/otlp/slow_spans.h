/*
 * Finds slow and failed spans of SDKs by the rules that programs with libblkin have
 * (tools/base/host_rules.h), with the same limit of alarms.
 *
 * A rule of duration is for spans at which a request enters a process (server, consumer) or begins
 * (no parent). Their durations contain those of the spans inside them. A rule of errors is for all
 * spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SLOW_SPANS_H
#define BLKIN_TOOLS_SLOW_SPANS_H

#include "libblkin/policy/slow_rules.h"
#include "otlp_decode.h"
#include "tools/base/payer.h"

#include <jansson.h>

/* A span that is slow or has failed. The text lives until the call returns; any bytes, any length.
 */
struct otlp_alarm {
    uint64_t trace_id_high, trace_id; /* both 0: the alarm only tells of `dropped` */
    uint64_t duration_ns;
    uint32_t dropped;   /* alarms of this rule that limits have held back since the last alarm */
    struct text why;    /* the rule */
    const char *sender; /* the name of its payer; NULL: of several */
};

typedef void otlp_alarm_fn(void *context, const struct otlp_alarm *alarm);

/* The owner sets alarm and context; the rest is 0. */
struct slow_spans {
    otlp_alarm_fn *alarm;
    void *context;
    struct blkin_slow_rules rules;
    uint32_t held_back[BLKIN_SLOW_RULES_MAX]; /* alarms by rule that no alarm has told yet */
};

/* At first, then about once a second: takes changed rules. Gives alarms without ids, which tell of
 * the alarms that were held back. */
void slow_spans_refresh(struct slow_spans *slow);

/* Returns the first rule that fits, or BLKIN_SLOW_NO_RULE. */
unsigned slow_spans_find(const struct slow_spans *slow, const struct otlp_origin *origin,
                         const struct otlp_span *span);

/* Gives an alarm of the rule if the sender's rate allows the alarm. Returns false if not: a later
 * alarm tells of it. */
bool slow_spans_give(struct slow_spans *slow, unsigned rule, struct payer *sender,
                     const struct otlp_span *span);

/* {"rules": [...], "wrong": ...}; NULL: out of memory. */
json_t *slow_spans_json(const struct slow_spans *slow);

#endif
