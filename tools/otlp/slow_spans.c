/*
 * Finds slow and failed spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "slow_spans.h"

#include "tools/base/host_rules.h"

#define RULE_NAME_MAX 1024 /* bytes of a name that rules are compared with */

void slow_spans_refresh(struct slow_spans *slow)
{
    for (unsigned i = 0; i < slow->rules.count; i++) {
        const struct otlp_alarm alarm = {.dropped = slow->held_back[i],
                                         .why = text_of(slow->rules.rules[i].text)};

        if (slow->held_back[i])
            slow->alarm(slow->context, &alarm);
        slow->held_back[i] = 0;
    }
    (void)host_rules_refresh();
    (void)blkin_slow_parse(&slow->rules, host_rules() ? host_rules() : "");
}

static const char *slow_spans_string(char string[RULE_NAME_MAX], struct text text)
{
    *text_copy(string, text_cut(text, RULE_NAME_MAX - 1)) = '\0';
    return string;
}

unsigned slow_spans_find(const struct slow_spans *slow, const struct otlp_origin *origin,
                         const struct otlp_span *span)
{
    const bool is_entry =
        span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER || !span->parent_id;
    const uint64_t counted_ns = is_entry ? (uint64_t)(span->end_ns - span->start_ns) : 0;
    char service[RULE_NAME_MAX], name[RULE_NAME_MAX];

    if (!span->is_error && counted_ns < slow->rules.least_ns)
        return BLKIN_SLOW_NO_RULE;
    return blkin_slow_find(&slow->rules, slow_spans_string(service, origin->service),
                           slow_spans_string(name, span->name), counted_ns, span->is_error);
}

bool slow_spans_give(struct slow_spans *slow, unsigned rule, struct payer *sender,
                     const struct otlp_span *span)
{
    const struct otlp_alarm alarm = {.trace_id_high = span->trace_id_high,
                                     .trace_id = span->trace_id,
                                     .duration_ns = (uint64_t)(span->end_ns - span->start_ns),
                                     .dropped = slow->held_back[rule],
                                     .why = text_of(slow->rules.rules[rule].text),
                                     .sender = sender->name};

    if (!payer_may_alarm(sender, BLKIN_SLOW_BURST_NS)) {
        slow->held_back[rule]++;
        return false;
    }
    slow->held_back[rule] = 0;
    slow->alarm(slow->context, &alarm);
    return true;
}

json_t *slow_spans_json(const struct slow_spans *slow)
{
    json_t *texts = json_array();

    for (unsigned i = 0; i < slow->rules.count; i++)
        (void)json_array_append_new(texts, json_string(slow->rules.rules[i].text));
    return json_pack("{so, ss}", "rules", texts, "wrong", host_rules_wrong());
}
