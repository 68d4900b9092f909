/*
 * Parses the rules of host-filters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "filter.h"

#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/base/text.h"
#include <stdio.h>
#include <string.h>

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
                       *spelled ? ", as it is or with " : "", spelled,
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
        return rule_refuse(reading, "%s: expected a view after it: one of %s", verbs[rule->verb],
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
                       is_threshold ? "nothing, \"for 1s\" or \"keep 10s\"" : "its end",
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
