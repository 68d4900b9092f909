/*
 * Reads parameters from babeltrace2's values.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include <string.h>

static const char *params_map_type_name(const bt_value *value)
{
    switch (bt_value_get_type(value)) {
    case BT_VALUE_TYPE_NULL:
        return "null";
    case BT_VALUE_TYPE_BOOL:
        return "a boolean";
    case BT_VALUE_TYPE_UNSIGNED_INTEGER:
    case BT_VALUE_TYPE_SIGNED_INTEGER:
        return "an integer";
    case BT_VALUE_TYPE_REAL:
        return "a real number";
    case BT_VALUE_TYPE_STRING:
        return "a string";
    case BT_VALUE_TYPE_ARRAY:
        return "an array";
    case BT_VALUE_TYPE_MAP:
        return "a map";
    default:
        return "of an unknown type";
    }
}

static bool params_map_refuse(const struct param_rule *rule, const char *expected,
                              const bt_value *value, struct error *error)
{
    return error_set(error, "parameter \"%s\": expected %s, got %s", rule->name, expected,
                     params_map_type_name(value));
}

/* Reads an array of strings, or one string with commas. */
static bool params_map_read_closing(struct params *params, const struct param_rule *rule,
                                    const bt_value *array, struct error *error)
{
    const uint64_t length = bt_value_array_get_length(array);

    params_note_given(params, rule);
    for (uint64_t i = 0; i < length; i++) {
        const bt_value *element = bt_value_array_borrow_element_by_index_const(array, i);

        if (!bt_value_is_string(element))
            return params_map_refuse(rule, "strings in the array", element, error);
        if (!params_add_closing(params, rule, text_of(bt_value_string_get(element)), error))
            return false;
    }
    return length > 0 ||
           error_set(error,
                     "parameter \"%s\": expected an array of strings or a string, got an empty "
                     "array",
                     rule->name);
}

/* Reads a signed or an unsigned integer: babeltrace2's command line makes 5 the one and +5 the
 * other. */
static bool params_map_get_integer(const bt_value *value, int64_t *integer)
{
    uint64_t given;

    if (bt_value_is_signed_integer(value)) {
        *integer = bt_value_integer_signed_get(value);
        return true;
    }
    if (!bt_value_is_unsigned_integer(value))
        return false;
    given = bt_value_integer_unsigned_get(value);
    *integer = given > INT64_MAX ? INT64_MAX : (int64_t)given;
    return true;
}

static bool params_map_read_value(struct params *params, const struct param_rule *rule,
                                  const bt_value *value, struct error *error)
{
    struct param_value plain = {.text = NULL};

    if (rule->type == PARAM_CLOSING && bt_value_is_array(value))
        return params_map_read_closing(params, rule, value, error);
    if (bt_value_is_string(value))
        plain.text = bt_value_string_get(value);
    else if (rule->type == PARAM_CHOICE)
        plain.text =
            params_map_type_name(value); /* no choice has this name, so the error shows it */
    else if (bt_value_is_bool(value))
        plain.integer = bt_value_bool_get(value);
    if (rule->type == PARAM_INTEGER && !params_map_get_integer(value, &plain.integer))
        return params_map_refuse(rule, "an integer", value, error);
    if (rule->type == PARAM_BOOLEAN && !bt_value_is_bool(value))
        return params_map_refuse(rule, "yes or no", value, error);
    if (rule->type == PARAM_TEXT && !plain.text)
        return params_map_refuse(rule, "a string", value, error);
    if (rule->type == PARAM_CLOSING && !plain.text)
        return params_map_refuse(rule, "an array of strings or a string", value, error);
    return params_set(params, rule, &plain, error);
}

struct params_reading {
    struct params *params;
    struct error *error;
    bool failed;
};

static bt_value_map_foreach_entry_const_func_status
params_map_read_entry(const char *key, const bt_value *value, void *context)
{
    struct params_reading *reading = context;
    size_t count;
    const struct param_rule *rules = params_table(&count);
    char names[1024] = "";

    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, rules[i].name) != 0)
            continue;
        reading->failed = !params_map_read_value(reading->params, &rules[i], value, reading->error);
        return reading->failed ? BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT
                               : BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
    }
    for (size_t i = 0; i < count; i++)
        string_list_add(names, sizeof(names), rules[i].name);
    error_set(reading->error, "parameter \"%s\" is not known: there are %s", key, names);
    reading->failed = true;
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

bool params_read(struct params *params, const bt_value *map, struct error *error)
{
    struct params_reading reading = {.params = params, .error = error};

    params_begin(params);
    (void)bt_value_map_foreach_entry_const(map, params_map_read_entry, &reading);
    params_end(params);
    return !reading.failed;
}
