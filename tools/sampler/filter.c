/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter.h"

#include "observe.h"
#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/base/text.h"

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
    bool has_asked; /* the agent was asked for this crossing */
    bool is_known;  /* `recorded` has a value */
    double now;
    double recorded;     /* the value of the last recorded sample */
    uint64_t held_since; /* the time from which on the threshold has held, in ns */
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

#define RULE_WORD_MAX 64

/* The state of the parser. */
struct rule_reading {
    struct host_rule *rule;
    const char *at;
    char word[RULE_WORD_MAX]; /* the last one; "": none */
    struct error *error;
};

static const char *const verbs[] = {
    [HOST_EVERY] = "every", [HOST_CHANGED] = "changed", [HOST_ABOVE] = ">", [HOST_BELOW] = "<"};

__attribute__((format(printf, 2, 3))) static bool rule_refuse(struct rule_reading *reading,
                                                              const char *format, ...)
{
    char why[700];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(why, sizeof(why), format, values);
    va_end(values);
    return error_set(reading->error, "parameter \"host-filters\": \"%s\": %s", reading->rule->text,
                     why);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Reads a word up to a blank or one of `ends`. Cuts a long word. */
static const char *next_word(struct rule_reading *reading, const char *ends)
{
    size_t length = 0;

    reading->at += strspn(reading->at, " \t");
    while (reading->at[length] && !strchr(" \t", reading->at[length]) &&
           !strchr(ends, reading->at[length]))
        length++;
    (void)snprintf(reading->word, RULE_WORD_MAX, "%.*s",
                   (int)(length < RULE_WORD_MAX ? length : RULE_WORD_MAX), reading->at);
    reading->at += length;
    return reading->word;
}

static bool next_duration(struct rule_reading *reading, const char *after, int64_t *ms)
{
    *ms = duration_read_ms(next_word(reading, ""));
    return *ms > 0 ||
           rule_refuse(reading, "%s: expected a duration such as 500ms, 10s or 2m, got \"%s\"",
                       after, reading->word);
}

/* ---- groups, views and instances ------------------------------------------------------------- */

static void list_views(const char *group, char *list, size_t size)
{
    size_t count;
    const struct host_view *views = host_views(&count);
    char item[RULE_WORD_MAX];

    *list = '\0';
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(item, sizeof(item), "%s.%s", group, views[i].name);
        if (strcmp(views[i].group, group) == 0)
            string_list_add(list, size, item);
    }
}

static bool read_view(struct rule_reading *reading, const char *group, const char *name)
{
    struct host_rule *rule = reading->rule;
    char list[400];

    rule->view = host_view_find(group, name);
    if (!rule->view) {
        list_views(group, list, sizeof(list));
        return rule_refuse(reading, "%s has no view \"%s\": expected one of %s", group, name, list);
    }
    return true;
}

static bool read_instances(struct rule_reading *reading)
{
    struct host_rule *rule = reading->rule;
    const char *end;

    if (*reading->at != '(')
        return true;
    end = strchr(reading->at, ')');
    if (!end || end == reading->at + 1 || (size_t)(end - reading->at) > sizeof(rule->instances))
        return rule_refuse(reading,
                           "expected names of instances in the parentheses, such as (vd*)");
    (void)snprintf(rule->instances, sizeof(rule->instances), "%.*s", (int)(end - reading->at - 1),
                   reading->at + 1);
    reading->at = end + 1;
    if (!host_definition(rule->kind)->has_instances)
        return rule_refuse(reading, "%s has no instances", host_definition(rule->kind)->name);
    return true;
}

/* Reads GROUP[.VIEW][(INSTANCES)]. A group's key in the configuration has - for _. */
static bool read_subject(struct rule_reading *reading)
{
    char list[400], *const word = reading->word, *name;

    (void)next_word(reading, "(<>");
    name = strchr(word, '.');
    if (name)
        *name++ = '\0';
    for (char *c = word; *c; c++)
        *c = *c == '-' ? '_' : *c;
    reading->rule->kind = host_kind_find(word);
    if (reading->rule->kind == HOST_KINDS) {
        *list = '\0';
        for (int kind = 0; kind < HOST_KINDS; kind++)
            string_list_add(list, sizeof(list), host_definition(kind)->name);
        return rule_refuse(reading, "there is no group \"%s\": expected one of %s", word, list);
    }
    return (!name || read_view(reading, word, name)) && read_instances(reading);
}

/* ---- amounts --------------------------------------------------------------------------------- */

/* Reads digits, with or without a fraction, in every locale. */
static bool read_number(const char **text, double *number)
{
    const size_t digits = strspn(*text, "0123456789");
    const char *end = *text + digits;
    char copy[RULE_WORD_MAX];

    if (*end == '.' && end[1] >= '0' && end[1] <= '9')
        end += 1 + strspn(end + 1, "0123456789");
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)(end - *text), *text);
    *number = real_read(copy, NULL);
    *text = end;
    return digits > 0 && digits <= 18;
}

/* Reads K, M, G or T: powers of 1024 for bytes, of 1000 for other units. */
static void read_multiple(const char **text, const char *unit, double *number)
{
    static const char multiples[] = "KMGT";
    const char *multiple = **text ? strchr(multiples, **text) : NULL;

    if (!multiple)
        return;
    for (; multiple >= multiples; multiple--)
        *number *= strncmp(unit, "By", 2) == 0 ? 1024 : 1000;
    ++*text;
}

/* Returns the short form of a unit: "B/s" of "By/s", "/s" of "{operation}/s". */
static void spell_unit(const char *unit, char spelled[RULE_WORD_MAX])
{
    if (*unit == '{')
        (void)snprintf(spelled, RULE_WORD_MAX, "%s", strchr(unit, '}') + 1);
    else if (strncmp(unit, "By", 2) == 0)
        (void)snprintf(spelled, RULE_WORD_MAX, "B%s", unit + 2);
    else
        (void)snprintf(spelled, RULE_WORD_MAX, "%s", unit);
}

static bool read_amount(struct rule_reading *reading, const char *after)
{
    struct host_rule *rule = reading->rule;
    const char *at = next_word(reading, ""), *by, *unit = rule->view->unit;
    char spelled[RULE_WORD_MAX];

    spell_unit(unit, spelled);
    if (read_number(&at, &rule->amount)) {
        rule->is_relative = rule->verb == HOST_CHANGED && strcmp(at, "%") == 0;
        if (rule->is_relative)
            return true;
        read_multiple(&at, unit, &rule->amount);
        by = strchr(spelled, '/');
        if (*at == '\0' || strcmp(at, spelled) == 0 || (by && strcmp(at, by) == 0))
            return true;
    }
    return rule_refuse(reading, "%s: expected a number%s%s%s, got \"%s\"", after,
                       *spelled ? ", without a unit or with " : "", spelled,
                       rule->verb == HOST_CHANGED && *unit != '%' ? ", or with %" : "",
                       reading->word);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static bool read_verb(struct rule_reading *reading)
{
    reading->at += strspn(reading->at, " \t");
    if (*reading->at == '<' || *reading->at == '>')
        (void)snprintf(reading->word, RULE_WORD_MAX, "%c", *reading->at++);
    else
        (void)next_word(reading, "<>");
    for (int verb = HOST_EVERY; verb <= HOST_BELOW; verb++) {
        reading->rule->verb = (enum host_verb)verb;
        if (strcmp(reading->word, verbs[verb]) == 0)
            return true;
    }
    return rule_refuse(reading, "expected \"every\", \"changed\", \">\" or \"<\", got \"%s\"",
                       reading->word);
}

/* Reads an optional "for DURATION" or "keep DURATION", and the next word. */
static bool read_optional(struct rule_reading *reading, const char *name, int64_t *ms)
{
    if (strcmp(reading->word, name) != 0)
        return true;
    if (!next_duration(reading, name, ms))
        return false;
    (void)next_word(reading, "");
    return true;
}

static bool read_rule(struct rule_reading *reading)
{
    struct host_rule *rule = reading->rule;
    int64_t every_ms = 0, for_ms = 0;
    bool is_threshold;
    char list[400];

    if (!read_subject(reading) || !read_verb(reading))
        return false;
    is_threshold = rule->verb == HOST_ABOVE || rule->verb == HOST_BELOW;
    if (rule->verb == HOST_EVERY && rule->view)
        return rule_refuse(reading,
                           "every: a group is recorded as a whole: expected \"%s every 1s\"",
                           host_definition(rule->kind)->name);
    if (rule->verb != HOST_EVERY && !rule->view) {
        list_views(host_definition(rule->kind)->name, list, sizeof(list));
        return rule_refuse(reading, "%s: expected a view before it: one of %s", verbs[rule->verb],
                           list);
    }
    if (rule->verb == HOST_EVERY ? !next_duration(reading, "every", &every_ms)
                                 : !read_amount(reading, verbs[rule->verb]))
        return false;
    (void)next_word(reading, "");
    if (is_threshold && (!read_optional(reading, "for", &for_ms) ||
                         !read_optional(reading, "keep", &rule->keep_ms)))
        return false;
    rule->every_ns = (uint64_t)every_ms * NS_PER_MS;
    rule->for_ns = (uint64_t)for_ms * NS_PER_MS;
    return reading->word[0] == '\0' ||
           rule_refuse(reading, "expected %s, got \"%s\"",
                       is_threshold ? "\"for 1s\", \"keep 10s\" or the rule's end"
                                    : "the rule's end",
                       reading->word);
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
        return rule_refuse(&reading, "expected a rule of less than %zu bytes", sizeof(rule->text));
    reading.at = rule->text;
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
