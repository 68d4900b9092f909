/* SPDX-License-Identifier: BSD-2-Clause */
#include "slow_rules.h"

#include "libblkin/base/text.h"

#include <string.h>

#define SLOW_CAP_MIN 1e-3 /* alarms per second */
#define SLOW_CAP_MAX 1e6

/* ---- the text form ---- */

/* Parses a number and its unit, for example 20ms. */
static bool slow_parse_duration(const char *text, uint64_t *least_ns)
{
    static const struct {
        char name[3];
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *unit;
    double number;

    if (!blkin_policy_number(text, &number, &unit))
        return false;
    unit += strspn(unit, " \t");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) == 0 && number * units[i].ns <= 1e18) {
            /* plus 1: a slow span takes longer than the number */
            *least_ns = (uint64_t)(number * units[i].ns + 0.5) + 1;
            return true;
        }
    }
    return false;
}

/* Parses NAME, or SERVICE:NAME. */
static bool slow_parse_globs(char *text, struct blkin_slow_rule *rule)
{
    char *colon = strchr(text, ':');

    rule->service = "*";
    if (colon) {
        *colon = '\0';
        rule->service = blkin_trimmed(text);
        text = colon + 1;
    }
    rule->name = blkin_trimmed(text);
    return rule->service[0] && rule->name[0];
}

/* Parses the text before ":error": empty, SERVICE or SERVICE:NAME. */
static bool slow_parse_error_rule(char *text, struct blkin_slow_rule *rule)
{
    rule->is_of_error = true;
    rule->service = rule->name = "*";
    if (!*text || strchr(text, ':'))
        return !*text || slow_parse_globs(text, rule);
    rule->service = blkin_trimmed(text);
    return rule->service[0] != '\0';
}

static bool slow_parse_rule(char *text, struct blkin_slow_rule *rule)
{
    char *last = strrchr(text, ':');
    char *above = strrchr(text, '>');

    if (strcmp(text, "error") == 0)
        return slow_parse_error_rule(text + strlen(text), rule);
    if (last && strcmp(blkin_trimmed(last + 1), "error") == 0) {
        *last = '\0';
        return last != text && slow_parse_error_rule(text, rule);
    }
    if (!above)
        return false;
    *above = '\0';
    return slow_parse_globs(text, rule) &&
           slow_parse_duration(blkin_trimmed(above + 1), &rule->least_ns);
}

/* Parses a number of alarms per second, for example 50/s. */
static bool slow_parse_cap(const char *text, uint64_t *period_ns)
{
    const char *unit;
    double number;

    if (!blkin_policy_number(text, &number, &unit) || strcmp(unit, "/s") != 0 ||
        number < SLOW_CAP_MIN || number > SLOW_CAP_MAX)
        return false;
    *period_ns = (uint64_t)(1e9 / number);
    return true;
}

/* text: stays unchanged, as the rule's text; to_cut: a copy that the function cuts into globs. */
static bool slow_parse_part(struct blkin_slow_rules *rules, const char *text, char *to_cut)
{
    struct blkin_slow_rule *rule = &rules->rules[rules->count];

    if (strncmp(text, "max=", 4) == 0)
        return slow_parse_cap(text + 4, &rules->cap_period_ns);
    if (rules->count == BLKIN_SLOW_RULES_MAX || !slow_parse_rule(to_cut, rule))
        return false;
    rule->text = text;
    rules->count++;
    if (!rule->is_of_error && rule->least_ns < rules->least_ns)
        rules->least_ns = rule->least_ns;
    return true;
}

const char *blkin_slow_parse(struct blkin_slow_rules *rules, const char *text)
{
    char *texts = rules->texts, *globs = rules->globs;
    const char *part;

    memset(rules, 0, sizeof(*rules));
    rules->least_ns = UINT64_MAX;
    rules->cap_period_ns = BLKIN_SLOW_CAP_PERIOD_NS;
    if (strlen(text) >= sizeof(rules->texts))
        return text;
    strcpy(rules->texts, text);
    strcpy(rules->globs, text);
    if (!blkin_trimmed(rules->globs)[0])
        return NULL;
    while ((part = strsep(&texts, ","))) {
        part = blkin_trimmed((char *)part);
        if (!slow_parse_part(rules, part, blkin_trimmed(strsep(&globs, ","))))
            return part;
    }
    return NULL;
}

/* ---- matching ---- */

unsigned blkin_slow_find(const struct blkin_slow_rules *rules, const char *service,
                         const char *name, uint64_t duration_ns, bool has_failed)
{
    bool is_decided = false;

    for (unsigned i = 0; i < rules->count; i++) {
        const struct blkin_slow_rule *rule = &rules->rules[i];

        if ((rule->is_of_error ? !has_failed : is_decided) ||
            !blkin_glob_fits(rule->service, service) || !blkin_glob_fits(rule->name, name))
            continue;
        if (rule->is_of_error || duration_ns >= rule->least_ns)
            return i;
        is_decided = true;
    }
    return BLKIN_SLOW_NO_RULE;
}
