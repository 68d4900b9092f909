/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter.h"

#include "observe.h"
#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/base/text.h"

#include <fnmatch.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_PERIOD_NS  UINT64_C(60000000000)
#define FILTER_WHY_BYTES 200 /* the agent's limit for a reason */

/* The state of a rule for one instance. */
struct rule_state {
    bool fits; /* the rule is about this instance */
    bool is_held;
    bool has_asked; /* the agent was asked for this crossing */
    bool is_known;  /* `recorded` has a value */
    double now;
    double recorded;     /* the value of the last recorded sample */
    uint64_t held_since; /* the time from which the threshold has held, in ns */
    uint64_t asked_at;   /* 0: never */
};

struct instance {
    bool is_recorded; /* the last sample was recorded */
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

/* Returns true if the duration since that time has passed at the sample. Tolerates a quarter of a
 * period, as the sampler may be late and then early. */
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

/* Returns true if the threshold has held for the rule's time. An unknown value holds no
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

/* Returns true if the rule has to ask the agent now: once for each crossing, and not twice for the
 * same seconds. */
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

/* Asks the agent, with the reason. A name of an instance may have any bytes: replaces those that
 * are not printable ASCII. */
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

/* Returns true if the rule is about the sample's instance. */
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

/* ---- the rules of host-filters --------------------------------------------------------------- */

#define RULE_BLANKS "[[:blank:]]+"
#define RULE_WORD   "([^[:blank:]]+)"
#define RULE_REFUSE(reading, format, ...)                                      \
    error_set((reading)->error, "parameter \"host-filters\": \"%s\": " format, \
              (reading)->rule->text, __VA_ARGS__)

/* As in regex(7). The groups of the form are the parts of a rule. */
static const char rule_form[] =
    "^([^.([:blank:]<>]+)(\\.([^([:blank:]<>]+))?(\\(([^)]+)\\))?"
    "[[:blank:]]*([<>]|" RULE_BLANKS "(every|changed)" RULE_BLANKS ")[[:blank:]]*" RULE_WORD
    "(" RULE_BLANKS "for" RULE_BLANKS RULE_WORD ")?(" RULE_BLANKS "keep" RULE_BLANKS RULE_WORD
    ")?$";

enum rule_part {
    RULE_GROUP = 1,
    RULE_VIEW = 3,
    RULE_INSTANCES = 5,
    RULE_VERB = 6,
    RULE_AMOUNT = 8,
    RULE_FOR = 10,
    RULE_KEEP = 12,
    RULE_PARTS
};

struct rule_reading {
    struct host_rule *rule;
    char parts[RULE_PARTS][HOST_RULE_BYTES]; /* "": not in the rule */
    struct error *error;
};

static bool refuse_form(struct rule_reading *reading)
{
    return RULE_REFUSE(
        reading, "expected %s",
        "GROUP every TIME, GROUP.VIEW changed NUMBER, or GROUP.VIEW > NUMBER (or <), "
        "then perhaps \"for 1s\" and \"keep 10s\"; (NAME,...) may follow the view");
}

static bool split_rule(struct rule_reading *reading)
{
    const char *text = reading->rule->text;
    const locale_t theirs = uselocale(real_locale()); /* a name may have any byte */
    regmatch_t found[RULE_PARTS];
    regex_t form;
    const bool is_made = regcomp(&form, rule_form, REG_EXTENDED) == 0;
    const bool fits = is_made && regexec(&form, text, RULE_PARTS, found, 0) == 0;

    (void)uselocale(theirs);
    if (!is_made)
        return error_set(reading->error, "out of memory");
    regfree(&form);
    for (size_t i = 0; fits && i < RULE_PARTS; i++)
        if (found[i].rm_so >= 0)
            (void)snprintf(reading->parts[i], HOST_RULE_BYTES, "%.*s",
                           (int)(found[i].rm_eo - found[i].rm_so), text + found[i].rm_so);
    return fits || refuse_form(reading);
}

/* Reads a duration, which may be missing. */
static bool read_duration(struct rule_reading *reading, const char *after, const char *text,
                          int64_t *ms)
{
    *ms = *text ? duration_read_ms(text) : 0;
    return !*text || *ms > 0 ||
           RULE_REFUSE(reading, "%s: expected a duration such as 500ms, 10s or 2m, got \"%s\"",
                       after, text);
}

static void list_views(const char *group, char *list, size_t size)
{
    size_t count;
    const struct host_view *views = host_views(&count);
    char item[HOST_RULE_BYTES + 32];

    *list = '\0';
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(item, sizeof(item), "%s.%s", group, views[i].name);
        if (strcmp(views[i].group, group) == 0)
            string_list_add(list, size, item);
    }
}

/* Reads GROUP[.VIEW][(INSTANCES)]. A group's key in the configuration has - for _. */
static bool read_subject(struct rule_reading *reading)
{
    struct host_rule *rule = reading->rule;
    char list[400] = "", *const group = reading->parts[RULE_GROUP];
    const char *const view = reading->parts[RULE_VIEW];

    for (char *c = group; *c; c++)
        *c = *c == '-' ? '_' : *c;
    rule->kind = host_kind_find(group);
    if (rule->kind == HOST_KINDS) {
        for (int kind = 0; kind < HOST_KINDS; kind++)
            string_list_add(list, sizeof(list), host_definition(kind)->name);
        return RULE_REFUSE(reading, "there is no group \"%s\": expected one of %s", group, list);
    }
    rule->view = host_view_find(group, view);
    list_views(group, list, sizeof(list));
    if (!rule->view && (*view || rule->verb != HOST_EVERY))
        return RULE_REFUSE(reading, "%s has no view \"%s\": expected one of %s", group, view, list);
    (void)snprintf(rule->instances, sizeof(rule->instances), "%s", reading->parts[RULE_INSTANCES]);
    if (*rule->instances && !host_definition(rule->kind)->has_instances)
        return RULE_REFUSE(reading, "%s has no instances", group);
    if (rule->verb == HOST_EVERY && rule->view)
        return RULE_REFUSE(
            reading, "every: a group is recorded as a whole: expected \"%s every 1s\"", group);
    return true;
}

/* ---- amounts --------------------------------------------------------------------------------- */

/* Reads K, M, G or T: powers of 1024 for bytes, of 1000 for other units. */
static void read_multiple(char **text, const char *unit, double *number)
{
    static const char multiples[] = "KMGT";
    const char *multiple = **text ? strchr(multiples, **text) : NULL;

    if (!multiple)
        return;
    for (; multiple >= multiples; multiple--)
        *number *= strncmp(unit, "By", 2) == 0 ? 1024 : 1000;
    ++*text;
}

/* Writes the short form of a unit: "B/s" of "By/s", "/s" of "{operation}/s". */
static void spell_unit(const char *unit, char *spelled, size_t size)
{
    const char *const rest = *unit == '{'                  ? strchr(unit, '}') + 1
                             : strncmp(unit, "By", 2) == 0 ? unit + 2
                                                           : unit;

    (void)snprintf(spelled, size, "%s%s", strncmp(unit, "By", 2) == 0 ? "B" : "", rest);
}

static bool read_amount(struct rule_reading *reading)
{
    struct host_rule *rule = reading->rule;
    const char *const text = reading->parts[RULE_AMOUNT], *const unit = rule->view->unit, *by;
    const size_t whole = strspn(text, "0123456789"), digits = strspn(text, "0123456789.");
    char spelled[32], *at;

    spell_unit(unit, spelled, sizeof(spelled));
    rule->amount = real_read(text, &at);
    if (whole > 0 && whole <= 18 && at == text + digits && at[-1] != '.') {
        rule->is_relative = rule->verb == HOST_CHANGED && strcmp(at, "%") == 0;
        if (rule->is_relative)
            return true;
        read_multiple(&at, unit, &rule->amount);
        by = strchr(spelled, '/');
        if (*at == '\0' || strcmp(at, spelled) == 0 || (by && strcmp(at, by) == 0))
            return true;
    }
    return RULE_REFUSE(reading, "expected a number%s%s%s, got \"%s\"",
                       *spelled ? ", without a unit or with " : "", spelled,
                       rule->verb == HOST_CHANGED && *unit != '%' ? ", or with %" : "", text);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static bool read_rule(struct rule_reading *reading)
{
    static const char verbs[] = {
        [HOST_EVERY] = 'v', [HOST_CHANGED] = 'c', [HOST_ABOVE] = '>', [HOST_BELOW] = '<'};
    struct host_rule *rule = reading->rule;
    int64_t every_ms = 0, for_ms;

    if (!split_rule(reading))
        return false;
    while (!strchr(reading->parts[RULE_VERB], verbs[rule->verb]))
        rule->verb++;
    if (!read_subject(reading) ||
        !(rule->verb == HOST_EVERY
              ? read_duration(reading, "every", reading->parts[RULE_AMOUNT], &every_ms)
              : read_amount(reading)) ||
        !read_duration(reading, "for", reading->parts[RULE_FOR], &for_ms) ||
        !read_duration(reading, "keep", reading->parts[RULE_KEEP], &rule->keep_ms))
        return false;
    rule->every_ns = (uint64_t)every_ms * NS_PER_MS;
    rule->for_ns = (uint64_t)for_ms * NS_PER_MS;
    return rule->verb >= HOST_ABOVE || (!rule->for_ns && !rule->keep_ms) || refuse_form(reading);
}

/* Returns the length of the first rule. A comma in parentheses belongs to the rule. */
static size_t rule_length(const char *text)
{
    size_t length = strcspn(text, ",(");

    while (text[length] == '(') {
        length += strcspn(text + length, ")");
        length += strcspn(text + length, ",(");
    }
    return length;
}

static bool add_rule(struct host_rules *rules, const char *text, size_t length, struct error *error)
{
    struct host_rule *rule = &rules->list[rules->count];
    struct rule_reading reading = {.rule = rule, .error = error};

    length -= strspn(text, " \t");
    text += strspn(text, " \t");
    while (length && strchr(" \t", text[length - 1]))
        length--;
    if (rules->count == HOST_RULES_MAX)
        return error_set(error, "parameter \"host-filters\": expected at most %d rules",
                         HOST_RULES_MAX);
    *rule = (struct host_rule){.kind = HOST_KINDS};
    (void)snprintf(rule->text, sizeof(rule->text), "%.*s", (int)length, text);
    if (length >= sizeof(rule->text))
        return RULE_REFUSE(&reading, "expected a rule of less than %zu bytes", sizeof(rule->text));
    rules->count++;
    return read_rule(&reading);
}

bool host_rules_parse(struct host_rules *rules, const char *text, struct error *error)
{
    rules->count = 0;
    if (text[strspn(text, " \t")] == '\0')
        return true;
    for (;;) {
        const size_t length = rule_length(text);

        if (!add_rule(rules, text, length, error))
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}
