/*
 * Decides for each sample whether the rules let it pass.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "filter.h"

#include "observe.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_PERIOD_NS  UINT64_C(60000000000)
#define FILTER_WHY_BYTES 200 /* the agent's limit for a reason */

/* The state of a rule for one instance. */
struct rule_state {
    bool fits; /* the rule is about this instance */
    bool is_held;
    bool has_asked; /* has asked the agent since the threshold holds */
    bool is_known;  /* `recorded` has a value */
    double now;
    double recorded;     /* the value of the last recorded sample */
    uint64_t held_since; /* the time since when the threshold holds, in ns */
    uint64_t asked_at;   /* 0: never */
};

struct instance {
    bool is_recorded; /* the last sample */
    uint64_t generation;
    uint64_t recorded_at;
    struct host_values last, now; /* last.at 0: there is no last sample */
    struct rule_state states[HOST_RULES_MAX];
};

struct host_filter {
    struct host_filter_callbacks on;
    struct host_rules rules;
    bool has_rules[HOST_KINDS];
    struct host_filter_counts counts;
    struct instance instances[HOST_SLOTS]; /* the kernel provides pages only for slots with rules */
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* Tolerates a quarter of a period, as the sampler may be late and then early. */
static bool is_over(uint64_t since, uint64_t duration_ns, const struct host_sample *sample)
{
    return sample->monotonic + (uint64_t)sample->period_ms * NS_PER_MS / 4 >= since + duration_ns;
}

static bool has_changed(const struct host_rule *rule, const struct rule_state *state, bool is_known)
{
    const double by = fabs(state->now - state->recorded);

    if (!is_known || !state->is_known)
        return is_known != state->is_known;
    return by > (rule->is_relative ? fabs(state->recorded) * rule->amount / 100 : rule->amount);
}

/* Returns whether the threshold has held for the rule's time. An unknown value holds no
 * threshold. */
static bool holds(const struct host_rule *rule, struct rule_state *state, bool is_known,
                  const struct instance *instance, const struct host_sample *sample)
{
    const bool was_held = state->is_held;

    state->is_held = is_known && (rule->verb == HOST_ABOVE ? state->now > rule->amount
                                                           : state->now < rule->amount);
    if (!state->is_held) {
        state->has_asked = false;
        return false;
    }
    if (!was_held)
        state->held_since = rule->view->is_gauge ? sample->monotonic : instance->last.at;
    return is_over(state->held_since, rule->for_ns, sample);
}

/* Asks once for each crossing, and not twice for the same seconds. */
static bool is_to_ask(const struct host_rule *rule, struct rule_state *state,
                      const struct host_sample *sample)
{
    if (state->has_asked ||
        (state->asked_at &&
         sample->monotonic < state->asked_at + (uint64_t)rule->keep_ms * NS_PER_MS))
        return false;
    state->has_asked = true;
    state->asked_at = sample->monotonic;
    return true;
}

/* The combined result of an instance's rules. */
struct filter_verdict {
    bool has_conditions, is_wanted;
    uint64_t every_ns;
    uint32_t asks;  /* bit i: rule i asks the agent to keep the last seconds */
    uint32_t known; /* bit i: the view of rule i has a value */
};

static struct filter_verdict judge(struct host_filter *filter, struct instance *instance,
                                   const struct host_sample *sample)
{
    struct filter_verdict verdict = {false, false, 0, 0, 0};

    for (size_t i = 0; i < filter->rules.count; i++) {
        const struct host_rule *rule = &filter->rules.list[i];
        struct rule_state *state = &instance->states[i];
        bool is_known, says_so;

        if (!state->fits)
            continue;
        if (rule->verb == HOST_EVERY) {
            verdict.every_ns =
                rule->every_ns > verdict.every_ns ? rule->every_ns : verdict.every_ns;
            continue;
        }
        is_known = host_values_view(sample->kind, rule->view, &instance->last, &instance->now,
                                    &state->now);
        verdict.known |= (uint32_t)is_known << i;
        says_so = rule->verb == HOST_CHANGED ? has_changed(rule, state, is_known)
                                             : holds(rule, state, is_known, instance, sample);
        if (rule->keep_ms) {
            verdict.asks |= (uint32_t)(says_so && is_to_ask(rule, state, sample)) << i;
            continue;
        }
        verdict.has_conditions = true;
        verdict.is_wanted |= says_so;
    }
    return verdict;
}

/* ---- passing and recording ------------------------------------------------------------------- */

static void pass(struct host_filter *filter, const struct host_sample *sample, uint64_t every_ns)
{
    struct host_sample as_recorded = *sample;

    if (every_ns / NS_PER_MS > sample->period_ms)
        as_recorded.period_ms = (uint32_t)(every_ns / NS_PER_MS);
    filter->counts.passed++;
    filter->on.pass(filter->on.context, &as_recorded);
}

static void pass_last(struct host_filter *filter, const struct instance *instance,
                      const struct host_sample *sample)
{
    struct host_sample last = *sample;

    last.monotonic = instance->last.at;
    last.present = instance->last.present;
    last.values = instance->last.values;
    filter->counts.held_back--;
    pass(filter, &last, 0);
}

static bool is_due(const struct filter_verdict *verdict, const struct instance *instance,
                   const struct host_sample *sample)
{
    if (!instance->last.at)
        return true;
    if (!is_over(instance->recorded_at, verdict->every_ns, sample))
        return false;
    return !verdict->has_conditions || verdict->is_wanted ||
           is_over(instance->recorded_at, QUIET_PERIOD_NS, sample);
}

/* Writes the reason. A name may have any bytes, so replaces those that do not belong into a
 * line. */
static void filter_ask(const struct host_filter *filter, size_t i, const struct instance *instance,
                       const struct host_sample *sample)
{
    const struct host_rule *rule = &filter->rules.list[i];
    char why[FILTER_WHY_BYTES];

    (void)snprintf(why, sizeof(why), "%.110s: %s%.60s%.4g%s%s", rule->text, sample->instance,
                   *sample->instance ? " " : "", instance->states[i].now,
                   *rule->view->unit == '%' ? "" : " ", rule->view->unit);
    for (char *c = why; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    filter->on.keep(filter->on.context, rule->keep_ms, why);
}

/* ---- instances ------------------------------------------------------------------------------- */

/* Returns whether the rule is about the sample's instance. */
static bool fits(const struct host_rule *rule, const struct host_sample *sample)
{
    char patterns[HOST_NAME_BYTES], *rest = NULL;

    if (rule->kind != sample->kind || !rule->instances[0])
        return rule->kind == sample->kind;
    (void)snprintf(patterns, sizeof(patterns), "%s", rule->instances);
    for (char *p = strtok_r(patterns, ", ", &rest); p; p = strtok_r(NULL, ", ", &rest)) {
        if (fnmatch(p, sample->instance, 0) == 0)
            return true;
    }
    return false;
}

static struct instance *instance_of(struct host_filter *filter, const struct host_sample *sample)
{
    struct instance *instance = &filter->instances[sample->slot];

    if (instance->last.at && instance->generation == sample->generation)
        return instance;
    *instance = (struct instance){.generation = sample->generation};
    for (size_t i = 0; i < filter->rules.count; i++)
        instance->states[i].fits = fits(&filter->rules.list[i], sample);
    return instance;
}

void host_filter_take(void *context, const struct host_sample *sample)
{
    struct host_filter *filter = context;
    struct instance *instance;
    struct filter_verdict verdict;
    bool is_recorded;

    if (sample->slot >= HOST_SLOTS || !filter->has_rules[sample->kind]) {
        pass(filter, sample, 0);
        return;
    }
    instance = instance_of(filter, sample);
    instance->now = host_values_of(sample);
    verdict = judge(filter, instance, sample);
    is_recorded = is_due(&verdict, instance, sample);
    if (is_recorded) {
        if (verdict.is_wanted && !verdict.every_ns && instance->last.at && !instance->is_recorded)
            pass_last(filter, instance, sample);
        pass(filter, sample, verdict.every_ns);
        instance->recorded_at = sample->monotonic;
        for (size_t i = 0; i < filter->rules.count; i++) {
            instance->states[i].recorded = instance->states[i].now;
            instance->states[i].is_known = verdict.known >> i & 1;
        }
    } else {
        filter->counts.held_back++;
    }
    instance->last = instance->now;
    instance->is_recorded = is_recorded;
    for (size_t i = 0; i < filter->rules.count; i++) {
        if (verdict.asks >> i & 1) {
            filter->counts.crossings++;
            filter_ask(filter, i, instance, sample);
        }
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct host_filter *host_filter_new(const struct host_rules *rules,
                                    const struct host_filter_callbacks *on)
{
    struct host_filter *filter = calloc(1, sizeof(*filter));

    if (!filter)
        return NULL;
    filter->on = *on;
    filter->rules = *rules;
    for (size_t i = 0; i < rules->count; i++)
        filter->has_rules[rules->list[i].kind] = true;
    return filter;
}

void host_filter_free(struct host_filter *filter)
{
    free(filter);
}

struct host_filter_counts host_filter_counts(const struct host_filter *filter)
{
    return filter->counts;
}
