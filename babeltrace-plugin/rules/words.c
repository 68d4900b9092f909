/*
 * Parses the values of a rules file: fields, conditions, times, texts with fields in them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rules_parts.h"

#include "babeltrace-plugin/base/duration.h"

#include <errno.h>
#include <stdlib.h>

struct text rules_next_word(struct text *text)
{
    struct text word;
    size_t length = 0;

    *text = text_trim(*text);
    while (length < text->length && !text_is_blank(text->data[length]))
        length++;
    word = text_cut(*text, length);
    *text = text_trim(text_after(*text, length));
    return word;
}

bool rules_split_last(struct text *text, const char *word, struct text *before)
{
    const size_t length = strlen(word);

    for (size_t i = text->length; i-- > 0;) {
        if (!text_is_blank(text->data[i]) || text->length - i < length + 2 ||
            memcmp(text->data + i + 1, word, length) != 0 ||
            !text_is_blank(text->data[i + 1 + length]))
            continue;
        *before = text_trim(text_cut(*text, i));
        *text = text_trim(text_after(*text, i + 1 + length));
        return true;
    }
    return false;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A path: members separated by ".", [N] for an element, "$" for a member of the context. */
static bool words_is_field(struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        const char c = text.data[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                               (c >= '0' && c <= '9') || c == ':';

        if (!is_letter && !(c == '$' && i == 0) && !(i > 0 && (c == '.' || c == '[' || c == ']')))
            return false;
    }
    return text.length > 0 && text.length <= 256;
}

bool rules_read_field(struct rules_reader *reader, struct text text, uint16_t *field)
{
    struct rules *rules = reader->rules;
    struct text *fields;
    uint16_t i = 0;

    if (!words_is_field(text))
        return rules_fail(reader, "the name of a field, such as handle, $vtid or request.ids[2]",
                          text);
    while (i < rules->field_count && !text_equal(rules->fields[i], text))
        i++;
    *field = i;
    if (i < rules->field_count)
        return true;
    if (i == RULES_FIELDS_MAX)
        return rules_fail(reader, "no more than 1000 fields in all rules", text);
    fields = rules_grow(reader, rules->fields, i, sizeof(*fields));
    if (!fields)
        return false;
    rules->fields = fields;
    rules->fields[rules->field_count++] = text;
    return true;
}

bool rules_read_fields(struct rules_reader *reader, struct text text, struct rule_fields *fields)
{
    fields->fields = rules_alloc(reader, (text.length / 2 + 1) * sizeof(*fields->fields));
    if (!fields->fields)
        return false;
    fields->count = 0;
    do {
        if (!rules_read_field(reader, rules_next_word(&text), &fields->fields[fields->count++]))
            return false;
    } while (text.length);
    return true;
}

/* FIELD, or LOOKUP(FIELD). */
static bool words_read_operand(struct rules_reader *reader, struct text text,
                               struct rule_operand *operand)
{
    const struct text all = text;
    const struct rules *rules = reader->rules;
    const struct text title = text_take(&text, '(');

    operand->lookup = RULE_NO_LOOKUP;
    if (!text.length || text.data[text.length - 1] != ')')
        return rules_read_field(reader, all, &operand->field);
    for (uint16_t i = 0; i < rules->lookup_count; i++) {
        if (text_equal(rules->lookups[i].section.title, title))
            operand->lookup = i;
    }
    if (operand->lookup == RULE_NO_LOOKUP)
        return rules_fail(reader, "the name of a [lookup NAME] above", title);
    return rules_read_field(reader, text_cut(text, text.length - 1), &operand->field);
}

bool rules_read_template(struct rules_reader *reader, struct text text,
                         struct rule_template *template)
{
    template->pieces = rules_alloc(reader, (text.length + 1) * sizeof(*template->pieces));
    if (!template->pieces)
        return false;
    while (text.length) {
        struct rule_piece *piece = &template->pieces[template->count++];
        const struct text all = text;
        struct text operand;

        piece->literal = text_take(&text, '{');
        if (piece->literal.length == all.length)
            return true;
        if (!memchr(text.data, '}', text.length))
            return rules_fail(reader, "a } after {", all);
        operand = text_take(&text, '}');
        piece->has_operand = true;
        if (!words_read_operand(reader, text_trim(operand), &piece->operand))
            return false;
    }
    return true;
}

/* FIELD or LOOKUP(FIELD), also after NAME=, any number of them; or "all". */
bool rules_read_tags(struct rules_reader *reader, struct text text, struct span_rule *rule)
{
    rule->tags = rules_alloc(reader, (text.length / 2 + 1) * sizeof(*rule->tags));
    rule->tags_all = text_is(text, "all");
    while (rule->tags && !rule->tags_all && text.length) {
        struct text word = rules_next_word(&text);
        struct rule_tag *tag = &rule->tags[rule->tag_count++];

        tag->key = word;
        if (memchr(word.data, '=', word.length))
            tag->key = text_take(&word, '=');
        if (!words_read_operand(reader, word, &tag->operand))
            return false;
    }
    return rule->tags != NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads a decimal number, or a hexadecimal one after 0x. It may begin with "-". Returns false for
 * another text, or a number below INT64_MIN or above UINT64_MAX. */
static bool words_read_number(struct text text, uint64_t *number, bool *is_negative)
{
    char digits[32], *end;

    if (text.length == 0 || text.length >= sizeof(digits))
        return false;
    *is_negative = text.data[0] == '-';
    *text_copy(digits, text) = '\0';
    if (digits[*is_negative] < '0' || digits[*is_negative] > '9')
        return false;
    errno = 0;
    *number = strtoull(digits + *is_negative, &end,
                       strncmp(digits + *is_negative, "0x", 2) == 0 ? 16 : 10);
    if (*end != '\0' || errno != 0 || (*is_negative && *number > UINT64_C(1) << 63))
        return false;
    if (*is_negative)
        *number = -*number;
    *is_negative = *is_negative && *number;
    return true;
}

bool rules_read_time(struct rules_reader *reader, struct text text, int64_t *ns)
{
    char word[32];

    if (text.length < sizeof(word))
        *text_copy(word, text) = '\0';
    *ns = text.length < sizeof(word) ? duration_read(word) : -1;
    return *ns >= 0 || rules_fail(reader, "a time with its unit, such as 20us, 5ms or 60s", text);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum rule_comparison comparison;
} words_comparisons[] = {{"==", RULE_EQUAL}, {"!=", RULE_UNEQUAL}, {"<=", RULE_MOST},
                         {">=", RULE_LEAST}, {"<", RULE_LESS},     {">", RULE_GREATER}};
#define WORDS_COMPARISONS (sizeof(words_comparisons) / sizeof(words_comparisons[0]))

/* FIELD == VALUE. The value ends at " and ", and its quotes are removed. */
static bool words_read_test(struct rules_reader *reader, struct text text, struct rule_test *test)
{
    const struct text all = text;
    const struct text field = rules_next_word(&text);
    const struct text comparison = rules_next_word(&text);
    size_t i = 0;

    while (i < WORDS_COMPARISONS && !text_is(comparison, words_comparisons[i].name))
        i++;
    if (i == WORDS_COMPARISONS || !text.length)
        return rules_fail(reader, "FIELD == VALUE, with one of == != < > <= >=", all);
    test->comparison = words_comparisons[i].comparison;
    test->value.type = VALUE_INTEGER;
    if (!words_read_number(text, &test->value.integer, &test->value.is_negative)) {
        if (text.length >= 2 && text.data[0] == '"' && text.data[text.length - 1] == '"')
            text = text_after(text_cut(text, text.length - 1), 1);
        else if (test->comparison != RULE_EQUAL && test->comparison != RULE_UNEQUAL)
            return rules_fail(reader, "a whole number after < > <= >=, or a text in quotes", all);
        test->value = (struct rule_value){.type = VALUE_TEXT, .text = text};
    }
    return rules_read_field(reader, field, &test->field);
}

bool rules_read_condition(struct rules_reader *reader, struct text text,
                          struct rule_condition *condition)
{
    struct text before;
    size_t room = 1;

    for (struct text rest = text; rules_split_last(&rest, "and", &before); rest = before)
        room++;
    condition->tests = rules_alloc(reader, room * sizeof(*condition->tests));
    if (!condition->tests)
        return false;
    condition->count = room;
    for (size_t i = room; i-- > 1; text = before) {
        (void)rules_split_last(&text, "and", &before);
        if (!words_read_test(reader, text, &condition->tests[i]))
            return false;
    }
    return words_read_test(reader, text, &condition->tests[0]);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* FIELD [UNIT] */
static bool words_read_times(struct rules_reader *reader, struct text text,
                             struct rule_point *point)
{
    const struct text field = rules_next_word(&text);
    char one[8] = "1ns"; /* the duration of one unit */

    if (text.length && text.length < sizeof(one) - 1)
        *text_copy(one + 1, text) = '\0';
    point->unit_ns = text.length < sizeof(one) - 1 ? duration_read(one) : -1;
    if (point->unit_ns < 0)
        return rules_fail(reader, "one of ns, us, ms and s", text);
    return rules_read_field(reader, field, &point->time_field);
}

static bool words_read_span_event(struct rules_reader *reader, struct text *text,
                                  struct rule_point *point)
{
    static const char *const words[] = {"with", "from", "until"};
    struct text before;

    for (int i = 0; i < 3; i++) {
        struct text rest = *text;

        if (!rules_split_last(&rest, words[i], &before))
            continue;
        point->times = (enum rule_times)i;
        *text = before;
        return words_read_times(reader, rest, point);
    }
    return rules_fail(reader, "EVENT with FIELD UNIT, EVENT from FIELD or EVENT until FIELD",
                      *text);
}

/* NAME=FIELD, any number of them. */
static bool words_read_renames(struct rules_reader *reader, struct text text,
                               struct rule_point *point)
{
    point->renames = rules_alloc(reader, (text.length / 2 + 1) * sizeof(*point->renames));
    while (point->renames && text.length) {
        struct text word = rules_next_word(&text);
        const struct text all = word, name = text_take(&word, '=');
        struct rule_rename *rename = &point->renames[point->rename_count++];

        if (name.length == all.length)
            return rules_fail(reader, "NAME=FIELD after where", all);
        if (!rules_read_field(reader, name, &rename->name) ||
            !rules_read_field(reader, word, &rename->field))
            return false;
    }
    return point->renames != NULL;
}

bool rules_read_point(struct rules_reader *reader, struct text text, struct rule_point *point)
{
    const struct text all = text;
    struct text before, rest;

    if (point->kind == POINT_STAGE || point->kind == POINT_MARK) {
        if (!rules_split_last(&text, "as", &before))
            return rules_fail(reader, "EVENT as NAME", all);
        point->label = text;
        text = before;
    }
    if (point->kind == POINT_EVENT && !words_read_span_event(reader, &text, point))
        return false;
    rest = text;
    if (rules_split_last(&rest, "where", &before)) {
        if (!words_read_renames(reader, rest, point))
            return false;
        text = before;
    }
    point->pattern = rules_next_word(&text);
    if (!point->pattern.length || !memchr(point->pattern.data, ':', point->pattern.length))
        return rules_fail(reader, "the name of an event, such as qemu:nbd_send_request", all);
    if (!text.length)
        return true;
    before = rules_next_word(&text);
    if (!text_is(before, "if"))
        return rules_fail(
            reader, "nothing after the event, or \"if CONDITION\", or \"where NAME=FIELD\"", all);
    return rules_read_condition(reader, text, &point->condition);
}
