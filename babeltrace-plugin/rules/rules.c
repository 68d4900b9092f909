/*
 * Rules files: sections, keys, and what is checked when all is read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rules_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

bool rules_fail(struct rules_reader *reader, const char *expected, struct text got)
{
    error_set(reader->error, "rules \"%s\", line %u: expected %s, got \"%.*s\"", reader->name,
              reader->line, expected, got.length > 80 ? 80 : (int)got.length,
              got.length ? got.data : "");
    return false;
}

static void *rules_no_memory(struct rules_reader *reader)
{
    error_set(reader->error, "rules \"%s\": out of memory", reader->name);
    return NULL;
}

void *rules_grow(struct rules_reader *reader, void *array, size_t count, size_t size)
{
    if (count == 0 || (count & (count - 1)) == 0) {
        array = realloc(array, (count ? 2 * count : 1) * size);
        if (!array)
            return rules_no_memory(reader);
    }
    memset((char *)array + count * size, 0, size);
    return array;
}

void *rules_alloc(struct rules_reader *reader, size_t size)
{
    struct rules *rules = reader->rules;
    void **blocks =
        (void **)rules_grow(reader, (void *)rules->blocks, rules->block_count, sizeof(*blocks));

    if (!blocks)
        return NULL;
    rules->blocks = blocks;
    blocks[rules->block_count] = calloc(1, size ? size : 1);
    return blocks[rules->block_count] ? blocks[rules->block_count++] : rules_no_memory(reader);
}

/* ---- keys of a section ----------------------------------------------------------------------- */

/* Where a point's section is. */
struct section {
    struct text title;
    const char *file;
    unsigned line;
};

static struct section rules_section_of(const struct rules *rules, const struct rule_point *point)
{
    if (point->kind == POINT_LOOKUP) {
        const struct rule_lookup *lookup = &rules->lookups[point->owner];

        return (struct section){lookup->title, lookup->file, lookup->line};
    }
    return (struct section){rules->rules[point->owner].title, rules->rules[point->owner].file,
                            rules->rules[point->owner].line};
}

/* A file that is given twice, or a copy of it, would make each span twice. */
static bool rules_check_again(struct rules_reader *reader, const struct rule_point *point)
{
    const struct rules *rules = reader->rules;
    const bool begins =
        point->kind == POINT_BEGIN || point->kind == POINT_EVENT || point->kind == POINT_LOOKUP;

    for (size_t i = 0; begins && i < reader->points_before; i++) {
        const struct rule_point *other = &rules->points[i];
        struct section section;

        if (other->kind != point->kind || !text_equal(other->text, point->text))
            continue;
        section = rules_section_of(rules, other);
        if (!text_equal(section.title, rules_section_of(rules, point).title))
            continue;
        error_set(reader->error,
                  "rules \"%s\", line %u: the same event %.*s is in the section of the same name "
                  "in \"%s\", line %u: expected each in one file",
                  reader->name, reader->line, (int)text_cut(point->text, 80).length,
                  point->text.data, section.file, section.line);
        return false;
    }
    return true;
}

static bool rules_add_point(struct rules_reader *reader, enum rule_point_kind kind,
                            struct text value)
{
    struct rules *rules = reader->rules;
    struct rule_point *points =
        rules_grow(reader, rules->points, rules->point_count, sizeof(*points));
    struct rule_point *point;

    if (!points)
        return false;
    rules->points = points;
    point = &points[rules->point_count++];
    point->kind = kind;
    point->text = value;
    point->owner =
        (uint16_t)(reader->rule ? reader->rule - rules->rules : reader->lookup - rules->lookups);
    return rules_read_point(reader, value, point) && rules_check_again(reader, point);
}

static bool rules_choose(struct rules_reader *reader, struct text value, const char *const *choices,
                         const char *expected, unsigned *choice)
{
    for (*choice = 0; choices[*choice]; ++*choice) {
        if (text_is(value, choices[*choice]))
            return true;
    }
    return rules_fail(reader, expected, value);
}

static bool rules_read_scope(struct rules_reader *reader, struct text value, enum rule_scope *scope)
{
    static const char *const scopes[] = {"thread", "process", "host", "session", NULL};
    unsigned choice;

    if (!rules_choose(reader, value, scopes, "thread, process, host or session", &choice))
        return false;
    *scope = (enum rule_scope)choice;
    return true;
}

static bool rules_read_kind(struct rules_reader *reader, struct text value, struct span_rule *rule)
{
    static const char *const kinds[] = {"local", "client", "server", "producer", "consumer", NULL};
    unsigned choice;

    if (!rules_choose(reader, value, kinds, "local, client, server, producer or consumer", &choice))
        return false;
    rule->kind = (enum span_kind)choice;
    return true;
}

static bool rules_read_parent(struct rules_reader *reader, struct text value,
                              struct span_rule *rule)
{
    struct text rest = value, before;

    if (text_is(value, "thread")) {
        rule->parent = PARENT_THREAD;
        return true;
    }
    if (rules_split_last(&rest, "by", &before)) {
        rule->parent = PARENT_RULE;
        rule->parent_title = before;
        return rules_read_fields(reader, rest, &rule->parent_fields);
    }
    before = rules_next_word(&rest);
    rule->parent = text_is(before, "traceparent") ? PARENT_TRACEPARENT
                   : text_is(before, "ids")       ? PARENT_IDS
                                                  : PARENT_NONE;
    if (rule->parent == PARENT_NONE)
        return rules_fail(reader, "thread, SECTION by FIELDS, traceparent FIELD, or ids TRACE SPAN",
                          value);
    if (!rules_read_fields(reader, rest, &rule->parent_fields))
        return false;
    return rule->parent_fields.count == (rule->parent == PARENT_IDS ? 2 : 1) ||
           rules_fail(reader, "traceparent FIELD, or ids TRACE SPAN", value);
}

/* CONDITION [as FIELD] */
static bool rules_read_error(struct rules_reader *reader, struct text value, struct span_rule *rule)
{
    struct text rest = value, before;

    rule->has_error = true;
    if (rules_split_last(&rest, "as", &before)) {
        if (!rules_read_field(reader, rest, &rule->error_field))
            return false;
        value = before;
    }
    return rules_read_condition(reader, value, &rule->error);
}

static bool rules_read_stack(struct rules_reader *reader, struct text value, struct span_rule *rule)
{
    static const char *const choices[] = {"no", "yes", NULL};
    unsigned choice;

    if (!rules_choose(reader, value, choices, "yes or no", &choice))
        return false;
    rule->is_stack = choice == 1;
    return true;
}

/* What an event of the section is for; -1: the key names no event. */
static int rules_point_kind(struct text key)
{
    static const struct {
        const char *name;
        enum rule_point_kind kind;
    } points[] = {{"begin", POINT_BEGIN},
                  {"end", POINT_END},
                  {"event", POINT_EVENT},
                  {"at", POINT_STAGE},
                  {"mark", POINT_MARK}};

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        if (text_is(key, points[i].name))
            return (int)points[i].kind;
    }
    return -1;
}

static bool rules_add_rule_point(struct rules_reader *reader, enum rule_point_kind kind,
                                 struct text value)
{
    struct span_rule *rule = reader->rule;

    rule->has_begin |= kind == POINT_BEGIN;
    rule->has_end |= kind == POINT_END;
    rule->has_event |= kind == POINT_EVENT;
    return rules_add_point(reader, kind, value);
}

static bool rules_read_rule_key(struct rules_reader *reader, struct text key, struct text value)
{
    struct span_rule *rule = reader->rule;
    const int kind = rules_point_kind(key);

    if (kind >= 0)
        return rules_add_rule_point(reader, (enum rule_point_kind)kind, value);
    if (text_is(key, "key")) {
        rule->has_key = true;
        return rules_read_fields(reader, value, &rule->key) &&
               (rule->key.count <= RULES_KEY_MAX ||
                rules_fail(reader, "a key of at most 16 fields", value));
    }
    if (text_is(key, "parent"))
        return rules_read_parent(reader, value, rule);
    if (text_is(key, "tags"))
        return rules_read_tags(reader, value, rule);
    if (text_is(key, "error"))
        return rules_read_error(reader, value, rule);
    if (text_is(key, "kind"))
        return rules_read_kind(reader, value, rule);
    if (text_is(key, "service"))
        return rules_read_template(reader, value, &rule->service);
    if (text_is(key, "scope"))
        return rules_read_scope(reader, value, &rule->scope);
    if (text_is(key, "stack"))
        return rules_read_stack(reader, value, rule);
    if (text_is(key, "timeout"))
        return rules_read_time(reader, value, &rule->timeout_ns);
    if (text_is(key, "least"))
        return rules_read_time(reader, value, &rule->least_ns);
    if (text_is(key, "join"))
        return rules_read_fields(reader, value, &rule->join);
    return rules_fail(
        reader,
        "begin, end, event, at, mark, key, parent, tags, error, kind, service, scope, "
        "stack, timeout, least or join",
        key);
}

static bool rules_read_lookup_key(struct rules_reader *reader, struct text key, struct text value)
{
    struct rule_lookup *lookup = reader->lookup;

    if (text_is(key, "event")) {
        lookup->has_event = true;
        return rules_add_point(reader, POINT_LOOKUP, value);
    }
    if (text_is(key, "key"))
        return rules_read_fields(reader, value, &lookup->key);
    if (text_is(key, "value"))
        return rules_read_field(reader, value, &lookup->value);
    if (text_is(key, "scope"))
        return rules_read_scope(reader, value, &lookup->scope);
    return rules_fail(reader, "event, key, value or scope in a lookup", key);
}

/* ---- sections -------------------------------------------------------------------------------- */

#define DEFAULT_TIMEOUT_NS INT64_C(60000000000)

static bool rules_begin_rule(struct rules_reader *reader, struct text title)
{
    struct rules *rules = reader->rules;
    struct span_rule *array;

    if (rules->count == RULES_COUNT_MAX)
        return rules_fail(reader, "no more than 1000 sections", title);
    array = rules_grow(reader, rules->rules, rules->count, sizeof(*array));
    if (!array)
        return false;
    rules->rules = array;
    reader->lookup = NULL;
    reader->rule = &array[rules->count++];
    *reader->rule = (struct span_rule){.title = title,
                                       .file = reader->name,
                                       .line = reader->line,
                                       .scope = SCOPE_PROCESS,
                                       .error_field = RULE_NO_FIELD,
                                       .timeout_ns = DEFAULT_TIMEOUT_NS};
    return rules_read_template(reader, title, &reader->rule->name);
}

static bool rules_begin_lookup(struct rules_reader *reader, struct text title)
{
    struct rules *rules = reader->rules;
    struct rule_lookup *array;

    if (rules->lookup_count == RULES_COUNT_MAX)
        return rules_fail(reader, "no more than 1000 lookups", title);
    array = rules_grow(reader, rules->lookups, rules->lookup_count, sizeof(*array));
    if (!array)
        return false;
    rules->lookups = array;
    reader->rule = NULL;
    reader->lookup = &array[rules->lookup_count++];
    *reader->lookup = (struct rule_lookup){.title = title,
                                           .file = reader->name,
                                           .line = reader->line,
                                           .scope = SCOPE_PROCESS,
                                           .value = RULE_NO_FIELD};
    return true;
}

static bool rules_begin_section(struct rules_reader *reader, struct text line)
{
    struct text title = {line.data + 1, line.length - 2}, type;

    if (line.length < 2 || line.data[line.length - 1] != ']')
        return rules_fail(reader, "[span NAME] or [lookup NAME]", line);
    type = rules_next_word(&title);
    if (title.length && text_is(type, "span"))
        return rules_begin_rule(reader, title);
    if (title.length && text_is(type, "lookup"))
        return rules_begin_lookup(reader, title);
    return rules_fail(reader, "[span NAME] or [lookup NAME]", line);
}

/* Without what follows on a "#" at the line's beginning, or after a blank. */
static struct text rules_without_comment(struct text line)
{
    for (size_t i = 0; i < line.length; i++) {
        if (line.data[i] == '#' && (i == 0 || line.data[i - 1] == ' ' || line.data[i - 1] == '\t'))
            return rules_trim(text_cut(line, i));
    }
    return rules_trim(line);
}

static bool rules_read_line(struct rules_reader *reader, struct text line)
{
    const char *equals;
    struct text key, value;

    line = rules_without_comment(line);
    if (!line.length)
        return true;
    if (line.data[0] == '[')
        return rules_begin_section(reader, line);
    equals = memchr(line.data, '=', line.length);
    if (!equals)
        return rules_fail(reader, "KEY = VALUE, or [span NAME]", line);
    key = rules_trim(text_cut(line, (size_t)(equals - line.data)));
    value = rules_trim((struct text){equals + 1, line.length - (size_t)(equals - line.data) - 1});
    if (!value.length)
        return rules_fail(reader, "a value after =", line);
    if (reader->rule)
        return rules_read_rule_key(reader, key, value);
    if (reader->lookup)
        return rules_read_lookup_key(reader, key, value);
    return rules_fail(reader, "[span NAME] before the first key", line);
}

/* ---- when all is read ------------------------------------------------------------------------ */

static bool rules_check_lookup(struct rules_reader *reader, const struct rule_lookup *lookup)
{
    reader->name = lookup->file;
    reader->line = lookup->line;
    if (lookup->has_event && lookup->key.count == 1 && lookup->value != RULE_NO_FIELD)
        return true;
    return rules_fail(reader, "event, value and a key of one field in a lookup", lookup->title);
}

/* The first one; of its own file, if there is one. */
static bool rules_find_parent(struct rules_reader *reader, struct span_rule *rule)
{
    const struct rules *rules = reader->rules;
    const struct span_rule *found = NULL;

    for (size_t i = rules->count; i-- > 0;) {
        const struct span_rule *parent = &rules->rules[i];

        if (text_equal(parent->title, rule->parent_title) && parent->has_key &&
            (!found || found->file != rule->file || parent->file == rule->file))
            found = parent;
    }
    if (!found)
        return rules_fail(reader, "a section with a key, by its name", rule->parent_title);
    rule->parent_rule = (uint16_t)(found - rules->rules);
    return found->key.count == rule->parent_fields.count ||
           rules_fail(reader, "as many fields as the parent's key has", rule->parent_title);
}

static bool rules_is_by_thread(const struct rules *rules, const struct span_rule *rule)
{
    for (size_t i = 0; i < rule->key.count; i++) {
        if (text_is(rules->fields[rule->key.fields[i]], "$vtid"))
            return true;
    }
    return rule->scope == SCOPE_THREAD;
}

static bool rules_has_field(const struct rule_fields *fields, uint16_t field)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (fields->fields[i] == field)
            return true;
    }
    return false;
}

/* What is in the key, the end has, too. */
static void rules_keep(struct span_rule *rule, uint16_t field)
{
    if (field != RULE_NO_FIELD && !rules_has_field(&rule->key, field) &&
        !rules_has_field(&rule->kept, field))
        rule->kept.fields[rule->kept.count++] = field;
}

static void rules_keep_template(struct span_rule *rule, const struct rule_template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        if (template->pieces[i].has_operand)
            rules_keep(rule, template->pieces[i].operand.field);
    }
}

static bool rules_list_kept(struct rules_reader *reader, struct span_rule *rule)
{
    rule->kept.fields = rules_alloc(reader, (reader->rules->field_count + 1) * sizeof(uint16_t));
    if (!rule->kept.fields)
        return false;
    rules_keep_template(rule, &rule->name);
    rules_keep_template(rule, &rule->service);
    for (size_t i = 0; i < rule->tag_count; i++)
        rules_keep(rule, rule->tags[i].operand.field);
    for (size_t i = 0; i < rule->error.count; i++)
        rules_keep(rule, rule->error.tests[i].field);
    for (size_t i = 0; i < rule->join.count; i++)
        rules_keep(rule, rule->join.fields[i]);
    rules_keep(rule, rule->error_field);
    return true;
}

static bool rules_check_rule(struct rules_reader *reader, struct span_rule *rule)
{
    reader->name = rule->file;
    reader->line = rule->line;
    if (!rule->has_event && (!rule->has_begin || !rule->has_end))
        return rules_fail(reader, "begin and end, or event, in the section", rule->title);
    if (rule->parent == PARENT_RULE && !rules_find_parent(reader, rule))
        return false;
    if (!rule->has_key)
        rule->scope = SCOPE_THREAD;
    rule->encloses = rules_is_by_thread(reader->rules, rule);
    rule->is_stack |= !rule->has_key;
    reader->rules->uses_stack |= !rule->has_key || rule->parent == PARENT_THREAD;
    return rules_list_kept(reader, rule);
}

bool rules_check(struct rules_reader *reader)
{
    struct rules *rules = reader->rules;

    for (size_t i = 0; i < rules->lookup_count; i++) {
        if (!rules_check_lookup(reader, &rules->lookups[i]))
            return false;
    }
    for (size_t i = 0; i < rules->count; i++) {
        if (!rules_check_rule(reader, &rules->rules[i]))
            return false;
    }
    if (!rules->count)
        error_set(reader->error, "rules \"%s\": expected a section [span NAME], got none",
                  reader->name);
    return rules->count > 0;
}

bool rules_add(struct rules_reader *reader, struct text text)
{
    char *copy = rules_alloc(reader, text.length);
    struct text left = {copy, text.length};

    if (!copy)
        return false;
    (void)text_copy(copy, text);
    reader->rules->digest = hash_text(reader->rules->digest, text);
    for (reader->line = 1; left.length; reader->line++) {
        const char *end = memchr(left.data, '\n', left.length);
        const size_t length = end ? (size_t)(end - left.data) : left.length;

        if (!rules_read_line(reader, text_cut(left, length)))
            return false;
        left =
            (struct text){left.data + length + (end ? 1 : 0), left.length - length - (end ? 1 : 0)};
    }
    return true;
}
