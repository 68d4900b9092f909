/*
 * Rules of slow and failed spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rules.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "libblkin/policy/slow_rules.h"

#define NAME_MAX 1024 /* of names: a rule sees no more */

/* Rules point into themselves: new ones are written to the other place. */
static struct blkin_slow_rules rules[2] = {{.least_ns = UINT64_MAX}, {.least_ns = UINT64_MAX}};
static unsigned current;
static struct blkin_rate cap = {.period_ns = BLKIN_SLOW_CAP_PERIOD_NS};
static uint32_t held_back[BLKIN_SLOW_RULES_MAX]; /* by rule, and not told yet */
static const struct foreign_callbacks *told;     /* while the rules change */
static char wrong_part[BLKIN_POLICY_TEXT_MAX];   /* of the text that was read last; "": none */

static const char *rules_take(const char *text);

static struct blkin_policy_source source = {
    .variable = "BLKIN_SLOW",
    .file_variable = "BLKIN_SLOW_FILE",
    .default_file = "/run/blkin/slow",
    .expected = BLKIN_SLOW_EXPECTED,
    .take = rules_take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void rules_tell_held_back(void)
{
    for (unsigned i = 0; i < rules[current].count; i++) {
        const struct foreign_alarm alarm = {.dropped = held_back[i],
                                            .why = text_of(rules[current].rules[i].text)};

        if (held_back[i] && told)
            told->alarm(told->context, &alarm);
        held_back[i] = 0;
    }
}

/* For the status; what is longer is cut. */
static const char *rules_note_wrong(const char *wrong)
{
    (void)snprintf(wrong_part, sizeof(wrong_part), "%s", wrong ? wrong : "");
    return wrong;
}

static const char *rules_take(const char *text)
{
    const char *wrong = blkin_slow_parse(&rules[!current], text);

    if (wrong)
        return rules_note_wrong(wrong);
    rules_tell_held_back();
    current = !current;
    cap = (struct blkin_rate){.period_ns = rules[current].cap_period_ns};
    return rules_note_wrong(NULL);
}

void foreign_rules_open(void)
{
    blkin_policy_init(&source);
}

void foreign_rules_refresh(const struct foreign_callbacks *callbacks)
{
    told = callbacks;
    blkin_policy_refresh(&source);
    rules_tell_held_back();
    told = NULL;
}

/* ---- a span ---------------------------------------------------------------------------------- */

static const char *rules_string(char string[NAME_MAX], struct text text)
{
    *text_copy(string, text_cut(text, NAME_MAX - 1)) = '\0';
    return string;
}

static bool rules_is_entry(const struct otlp_span *span)
{
    return span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER || !span->parent_id;
}

enum rules_verdict foreign_rules_check(const struct otlp_origin *origin,
                                       const struct otlp_span *span,
                                       const struct foreign_callbacks *callbacks)
{
    const struct blkin_slow_rules *in_force = &rules[current];
    const uint64_t duration_ns = (uint64_t)(span->end_ns - span->start_ns);
    const uint64_t counted_ns = rules_is_entry(span) ? duration_ns : 0;
    char service[NAME_MAX], name[NAME_MAX];
    struct foreign_alarm alarm;
    unsigned rule;

    if (!span->is_error && counted_ns < in_force->least_ns)
        return RULES_FINE;
    rule = blkin_slow_find(in_force, rules_string(service, origin->service),
                           rules_string(name, span->name), counted_ns, span->is_error);
    if (rule == BLKIN_SLOW_NO_RULE)
        return RULES_FINE;
    if (!blkin_within_rate(&cap, BLKIN_SLOW_BURST_NS, (uint64_t)clock_ns())) {
        held_back[rule]++;
        return RULES_HELD_BACK;
    }
    alarm = (struct foreign_alarm){.trace_id_high = span->trace_id_high,
                                   .trace_id = span->trace_id,
                                   .duration_ns = duration_ns,
                                   .dropped = held_back[rule],
                                   .why = text_of(in_force->rules[rule].text)};
    held_back[rule] = 0;
    callbacks->alarm(callbacks->context, &alarm);
    return RULES_ALARM;
}

json_t *foreign_rules_json(void)
{
    json_t *texts = json_array();

    for (unsigned i = 0; i < rules[current].count; i++)
        (void)json_array_append_new(texts, json_string(rules[current].rules[i].text));
    return json_pack("{so, ss}", "rules", texts, "wrong", wrong_part);
}
