/*
 * Rules files: sections, keys, and checks at the end.
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
    if ((count & (count - 1)) == 0) {
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

static const struct rule_section *rules_section_of(const struct rules *rules,
                                                   const struct rule_point *point)
{
    return point->kind == POINT_LOOKUP ? &rules->lookups[point->owner].section
                                       : &rules->rules[point->owner].section;
}

/* A file that is given twice, or a copy of a file, would make each span twice. */
static bool rules_check_again(struct rules_reader *reader, const struct rule_point *point)
{
    const struct rules *rules = reader->rules;
    const bool begins =
        point->kind == POINT_BEGIN || point->kind == POINT_EVENT || point->kind == POINT_LOOKUP;

    for (size_t i = 0; begins && i < reader->points_before; i++) {
        const struct rule_point *other = &rules->points[i];
        const struct rule_section *section = rules_section_of(rules, other);

        if (other->kind != point->kind || !text_equal(other->text, point->text) ||
            !text_equal(section->title, rules_section_of(rules, point)->title))
            continue;
        error_set(reader->error,
                  "rules \"%s\", line %u: the same event %.*s is in the section of the same name "
                  "in \"%s\", line %u: expected each event in one file",
                  reader->name, reader->line, (int)text_cut(point->text, 80).length,
                  point->text.data, section->file, section->line);
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
    if (reader->rule)
        reader->rule->points |= 1U << kind;
    return rules_read_point(reader, value, point) && rules_check_again(reader, point);
}

/* Returns the number of the choice, or -1 with the error set. */
static int rules_choose(struct rules_reader *reader, struct text value, const char *const *choices,
                        const char *expected)
{
    for (int i = 0; choices[i]; i++) {
        if (text_is(value, choices[i]))
            return i;
    }
    (void)rules_fail(reader, expected, value);
    return -1;
}

static bool rules_read_scope(struct rules_reader *reader, struct text value, enum rule_scope *scope)
{
    static const char *const scopes[] = {"thread", "process", "host", "session", NULL};
    const int choice = rules_choose(reader, value, scopes, "thread, process, host or session");

    *scope = choice < 0 ? SCOPE_PROCESS : (enum rule_scope)choice;
    return choice >= 0;
}

static bool rules_read_kind(struct rules_reader *reader, struct text value, struct span_rule *rule)
{
    static const char *const kinds[] = {"local", "client", "server", "producer", "consumer", NULL};
    const int choice =
        rules_choose(reader, value, kinds, "local, client, server, producer or consumer");

    rule->kind = choice < 0 ? SPAN_LOCAL : (enum span_kind)choice;
    return choice >= 0;
}

static bool rules_read_stack(struct rules_reader *reader, struct text value, struct span_rule *rule)
{
    static const char *const choices[] = {"no", "yes", NULL};
    const int choice = rules_choose(reader, value, choices, "yes or no");

    rule->is_stack = choice == 1;
    return choice >= 0;
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

    if (rules_split_last(&rest, "as", &before)) {
        if (!rules_read_field(reader, rest, &rule->error_field))
            return false;
        value = before;
    }
    return rules_read_condition(reader, value, &rule->error);
}

/* Returns the kind of an event of the section; -1: the key names no event. */
static int rules_point_kind(struct text key)
{
    static const char *const names[] = {[POINT_END] = "end",
                                        [POINT_EVENT] = "event",
                                        [POINT_BEGIN] = "begin",
                                        [POINT_STAGE] = "at",
                                        [POINT_MARK] = "mark"};

    for (int kind = POINT_END; kind <= POINT_MARK; kind++) {
        if (text_is(key, names[kind]))
            return kind;
    }
    return -1;
}

static bool rules_read_rule_key(struct rules_reader *reader, struct text key, struct text value)
{
    struct span_rule *rule = reader->rule;
    const int kind = rules_point_kind(key);

    if (kind >= 0)
        return rules_add_point(reader, (enum rule_point_kind)kind, value);
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
    *reader->rule = (struct span_rule){.section = {title, reader->name, reader->line},
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
    *reader->lookup = (struct rule_lookup){.section = {title, reader->name, reader->line},
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

static bool rules_read_line(struct rules_reader *reader, struct text line)
{
    struct text key, value;

    line = text_without_comment(line);
    if (!line.length)
        return true;
    if (line.data[0] == '[')
        return rules_begin_section(reader, line);
    if (!memchr(line.data, '=', line.length))
        return rules_fail(reader, "KEY = VALUE, or [span NAME]", line);
    value = line;
    key = text_trim(text_take(&value, '='));
    value = text_trim(value);
    if (!value.length)
        return rules_fail(reader, "a value after =", line);
    if (reader->rule)
        return rules_read_rule_key(reader, key, value);
    if (reader->lookup)
        return rules_read_lookup_key(reader, key, value);
    return rules_fail(reader, "[span NAME] before the first key", line);
}

/* ---- checks at the end ----------------------------------------------------------------------- */

/* Sets the position that messages name. */
static void rules_set_position(struct rules_reader *reader, const struct rule_section *section)
{
    reader->name = section->file;
    reader->line = section->line;
}

static bool rules_check_lookup(struct rules_reader *reader, const struct rule_lookup *lookup)
{
    rules_set_position(reader, &lookup->section);
    if (lookup->has_event && lookup->key.count == 1 && lookup->value != RULE_NO_FIELD)
        return true;
    return rules_fail(reader, "event, value and a key of one field in a lookup",
                      lookup->section.title);
}

/* Finds the first rule with the parent's title, preferably in the same file. */
static bool rules_find_parent(struct rules_reader *reader, struct span_rule *rule)
{
    const struct rules *rules = reader->rules;
    struct span_rule *found = NULL;

    for (size_t i = rules->count; i-- > 0;) {
        struct span_rule *parent = &rules->rules[i];

        if (text_equal(parent->section.title, rule->parent_title) && parent->has_key &&
            (!found || found->section.file != rule->section.file ||
             parent->section.file == rule->section.file))
            found = parent;
    }
    if (!found)
        return rules_fail(reader, "a section with a key, by its name", rule->parent_title);
    found->is_parent = true;
    rule->parent_rule = (uint16_t)(found - rules->rules);
    return found->key.count == rule->parent_fields.count ||
           rules_fail(reader, "as many fields as the parent's key has", rule->parent_title);
}

static bool rules_has_field(const struct rule_fields *fields, uint16_t field)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (fields->fields[i] == field)
            return true;
    }
    return false;
}

/* The end has the fields of the key, so these need not be stored. */
static void rules_store(struct span_rule *rule, uint16_t field)
{
    if (field != RULE_NO_FIELD && !rules_has_field(&rule->key, field) &&
        !rules_has_field(&rule->stored, field))
        rule->stored.fields[rule->stored.count++] = field;
}

static void rules_store_template(struct span_rule *rule, const struct rule_template *template)
{
    for (size_t i = 0; i < template->count; i++) {
        if (template->pieces[i].has_operand)
            rules_store(rule, template->pieces[i].operand.field);
    }
}

static bool rules_list_stored(struct rules_reader *reader, struct span_rule *rule)
{
    rule->stored.fields = rules_alloc(reader, (reader->rules->field_count + 1) * sizeof(uint16_t));
    if (!rule->stored.fields)
        return false;
    rules_store_template(rule, &rule->name);
    rules_store_template(rule, &rule->service);
    for (size_t i = 0; i < rule->tag_count; i++)
        rules_store(rule, rule->tags[i].operand.field);
    for (size_t i = 0; i < rule->error.count; i++)
        rules_store(rule, rule->error.tests[i].field);
    for (size_t i = 0; i < rule->join.count; i++)
        rules_store(rule, rule->join.fields[i]);
    rules_store(rule, rule->error_field);
    return true;
}

static bool rules_check_rule(struct rules_reader *reader, struct span_rule *rule)
{
    const unsigned both = 1U << POINT_BEGIN | 1U << POINT_END;

    rules_set_position(reader, &rule->section);
    if (!(rule->points & 1U << POINT_EVENT) && (rule->points & both) != both)
        return rules_fail(reader, "begin and end, or event, in the section", rule->section.title);
    if (rule->parent == PARENT_RULE && !rules_find_parent(reader, rule))
        return false;
    if (!rule->has_key)
        rule->scope = SCOPE_THREAD;
    rule->is_stack |= !rule->has_key;
    return true;
}

/* A thread's number in a key means the same as the scope "thread", which costs less. Children find
 * their parent by the fields of its key, so those fields stay. */
static void rules_fold_thread(const struct rules *rules, struct span_rule *rule)
{
    const bool can_fold =
        !rule->is_parent && (rule->scope == SCOPE_PROCESS || rule->scope == SCOPE_THREAD);
    size_t count = 0;

    rule->encloses = rule->scope == SCOPE_THREAD;
    for (size_t i = 0; i < rule->key.count; i++) {
        const uint16_t field = rule->key.fields[i];
        const bool is_thread = text_is(rules->fields[field], "$vtid");

        rule->encloses |= is_thread;
        if (is_thread && can_fold)
            rule->scope = SCOPE_THREAD;
        else
            rule->key.fields[count++] = field;
    }
    rule->key.count = count;
}

static bool rules_same_key(const struct span_rule *a, const struct span_rule *b)
{
    return a->scope == b->scope && a->key.count == b->key.count &&
           (a->key.count == 0 ||
            memcmp(a->key.fields, b->key.fields, a->key.count * sizeof(*a->key.fields)) == 0);
}

/* Computes for each rule the parts that depend on all rules. */
static void rules_compute_forms(struct rules *rules)
{
    bool uses_stack = false;

    for (size_t i = 0; i < rules->count; i++) {
        struct span_rule *rule = &rules->rules[i];

        uses_stack |= !rule->has_key || rule->parent == PARENT_THREAD;
        rules_fold_thread(rules, rule);
    }
    for (size_t i = 0; i < rules->count; i++) {
        struct span_rule *rule = &rules->rules[i];

        rule->encloses &= uses_stack;
        while (!rules_same_key(rule, &rules->rules[rule->form]))
            rule->form++;
    }
}

bool rules_check(struct rules_reader *reader)
{
    struct rules *rules = reader->rules;

    for (size_t i = RULES_PROCESS_NAMES + 1; i < rules->lookup_count; i++) {
        if (!rules_check_lookup(reader, &rules->lookups[i]))
            return false;
    }
    for (size_t i = 0; i < rules->count; i++) {
        if (!rules_check_rule(reader, &rules->rules[i]))
            return false;
    }
    rules_compute_forms(rules);
    for (size_t i = 0; i < rules->count; i++) {
        if (!rules_list_stored(reader, &rules->rules[i]))
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
    for (reader->line = 1; left.length; reader->line++) {
        if (!rules_read_line(reader, text_take(&left, '\n')))
            return false;
    }
    return true;
}
