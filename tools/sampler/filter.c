/*
 * Filters at the source.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "filter.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_THE_SAME_NS UINT64_C(60000000000)
#define NS_PER_MS       1000000
#define WHY_BYTES       200 /* as long as the recorder takes a reason */

/* A sample that was not recorded yet, or was. */
struct taken {
    uint64_t at;
    uint64_t present;
    uint64_t values[HOST_METRICS_MAX];
};

/* What a rule knows of an instance. */
struct memory {
    bool fits; /* it is about it */
    bool is_held;
    bool has_asked; /* the recorder, for as long as it holds */
    bool is_known;  /* `recorded` */
    double now;
    double recorded;     /* of the sample that was recorded last */
    uint64_t held_since; /* ns */
    uint64_t asked_at;   /* 0: never */
};

struct instance {
    bool is_known, is_recorded; /* the last sample */
    uint64_t generation;
    uint64_t recorded_at;
    struct taken last;
    struct memory memories[HOST_RULES_MAX];
};

struct host_filter {
    struct host_filter_callbacks on;
    struct host_rules rules;
    bool has_rules[HOST_KINDS];
    struct host_filter_counts counts;
    struct instance
        instances[HOST_SLOTS]; /* pages of slots that no rule is about are not touched */
};

/* ---- what an interval says ------------------------------------------------------------------- */

struct filter_names {
    enum host_kind kind;
    uint64_t present; /* in both */
};

static int filter_find_metric(const void *context, const char *name, size_t length)
{
    const struct filter_names *names = context;

    return host_metric_find(names->kind, names->present, name, length);
}

static bool view_value(const struct host_rule *rule, const struct instance *instance,
                       const struct host_sample *sample, double *value)
{
    const bool is_gauge = rule->view->is_gauge;
    const bool has_before = instance->is_known && instance->last.at < sample->monotonic;
    const struct filter_names names = {
        sample->kind, sample->present & (is_gauge ? UINT64_MAX : instance->last.present)};
    const struct host_interval interval = {.from = has_before ? instance->last.at : 0,
                                           .to = sample->monotonic,
                                           .before = has_before ? instance->last.values : NULL,
                                           .after = sample->values,
                                           .find = filter_find_metric,
                                           .context = &names};

    return (has_before || is_gauge) && host_view_value(rule->view, &interval, value) &&
           isfinite(*value);
}

/* ---- what a rule says ------------------------------------------------------------------------ */

/* The sampler may be late, and then early again. */
static bool is_over(uint64_t since, uint64_t so_long, const struct host_sample *sample)
{
    return sample->monotonic + (uint64_t)sample->period_ms * NS_PER_MS / 4 >= since + so_long;
}

static bool has_changed(const struct host_rule *rule, const struct memory *memory, bool is_known)
{
    const double by = fabs(memory->now - memory->recorded);

    if (!is_known || !memory->is_known)
        return is_known != memory->is_known;
    return by > (rule->is_relative ? fabs(memory->recorded) * rule->amount / 100 : rule->amount);
}

/* Does it hold, and has for so long? What is not known does not. */
static bool holds(const struct host_rule *rule, struct memory *memory, bool is_known,
                  const struct instance *instance, const struct host_sample *sample)
{
    const bool was_held = memory->is_held;

    memory->is_held = is_known && (rule->verb == HOST_ABOVE ? memory->now > rule->amount
                                                            : memory->now < rule->amount);
    if (!memory->is_held) {
        memory->has_asked = false;
        return false;
    }
    if (!was_held)
        memory->held_since = rule->view->is_gauge ? sample->monotonic : instance->last.at;
    return is_over(memory->held_since, rule->for_ns, sample);
}

/* Once for a crossing, and not for the same seconds again. */
static bool is_to_ask(const struct host_rule *rule, struct memory *memory,
                      const struct host_sample *sample)
{
    if (memory->has_asked ||
        (memory->asked_at &&
         sample->monotonic < memory->asked_at + (uint64_t)rule->keep_ms * NS_PER_MS))
        return false;
    memory->has_asked = true;
    memory->asked_at = sample->monotonic;
    return true;
}

/* What the rules of an instance say together. */
struct verdict {
    bool has_conditions, is_wanted;
    uint64_t every_ns;
    uint32_t asks;  /* bit i: rule i wants the recorder to keep */
    uint32_t known; /* bit i: the view of rule i has a value */
};

static struct verdict judge(struct host_filter *filter, struct instance *instance,
                            const struct host_sample *sample)
{
    struct verdict verdict = {false, false, 0, 0, 0};

    for (size_t i = 0; i < filter->rules.count; i++) {
        const struct host_rule *rule = &filter->rules.list[i];
        struct memory *memory = &instance->memories[i];
        bool is_known, says_so;

        if (!memory->fits)
            continue;
        if (rule->verb == HOST_EVERY) {
            verdict.every_ns =
                rule->every_ns > verdict.every_ns ? rule->every_ns : verdict.every_ns;
            continue;
        }
        is_known = view_value(rule, instance, sample, &memory->now);
        verdict.known |= (uint32_t)is_known << i;
        says_so = rule->verb == HOST_CHANGED ? has_changed(rule, memory, is_known)
                                             : holds(rule, memory, is_known, instance, sample);
        if (rule->keep_ms) {
            verdict.asks |= (uint32_t)(says_so && is_to_ask(rule, memory, sample)) << i;
            continue;
        }
        verdict.has_conditions = true;
        verdict.is_wanted |= says_so;
    }
    return verdict;
}

/* ---- what becomes of it ---------------------------------------------------------------------- */

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

static void note_recorded(struct host_filter *filter, struct instance *instance, uint64_t at,
                          uint32_t known)
{
    instance->recorded_at = at;
    for (size_t i = 0; i < filter->rules.count; i++) {
        instance->memories[i].recorded = instance->memories[i].now;
        instance->memories[i].is_known = known >> i & 1;
    }
}

static bool is_due(const struct verdict *verdict, const struct instance *instance,
                   const struct host_sample *sample)
{
    if (!instance->is_known)
        return true;
    if (!is_over(instance->recorded_at, verdict->every_ns, sample))
        return false;
    return !verdict->has_conditions || verdict->is_wanted ||
           is_over(instance->recorded_at, ALL_THE_SAME_NS, sample);
}

static void remember(struct instance *instance, const struct host_sample *sample, bool is_recorded)
{
    const size_t count = sample->count < HOST_METRICS_MAX ? sample->count : HOST_METRICS_MAX;

    instance->is_known = true;
    instance->is_recorded = is_recorded;
    instance->last.at = sample->monotonic;
    instance->last.present = sample->present;
    memcpy(instance->last.values, sample->values, count * sizeof(*sample->values));
}

/* A name of any bytes is part of a line. */
static void filter_ask(const struct host_filter *filter, size_t i, const struct instance *instance,
                       const struct host_sample *sample)
{
    const struct host_rule *rule = &filter->rules.list[i];
    char why[WHY_BYTES];

    (void)snprintf(why, sizeof(why), "%.110s: %s%.60s%.4g%s%s", rule->text, sample->instance,
                   *sample->instance ? " " : "", instance->memories[i].now,
                   *rule->view->unit == '%' ? "" : " ", rule->view->unit);
    for (char *c = why; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    filter->on.keep(filter->on.context, rule->keep_ms, why);
}

/* ---- instances ------------------------------------------------------------------------------- */

/* Names with commas between. */
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

    if (instance->is_known && instance->generation == sample->generation)
        return instance;
    *instance = (struct instance){.generation = sample->generation};
    for (size_t i = 0; i < filter->rules.count; i++)
        instance->memories[i].fits = fits(&filter->rules.list[i], sample);
    return instance;
}

void host_filter_take(void *context, const struct host_sample *sample)
{
    struct host_filter *filter = context;
    struct instance *instance;
    struct verdict verdict;
    bool is_recorded;

    if (sample->slot >= HOST_SLOTS || !filter->has_rules[sample->kind]) {
        pass(filter, sample, 0);
        return;
    }
    instance = instance_of(filter, sample);
    verdict = judge(filter, instance, sample);
    is_recorded = is_due(&verdict, instance, sample);
    if (is_recorded) {
        if (verdict.is_wanted && !verdict.every_ns && instance->is_known && !instance->is_recorded)
            pass_last(filter, instance, sample);
        pass(filter, sample, verdict.every_ns);
        note_recorded(filter, instance, sample->monotonic, verdict.known);
    } else {
        filter->counts.held_back++;
    }
    remember(instance, sample, is_recorded);
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
