/*
 * Reading of parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "params.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum type { TEXT, INTEGER, BOOLEAN, CLOSING };

struct rule {
    const char *name;
    enum type type;
    size_t offset; /* in struct params */
    int64_t min;
    int64_t max;
    int64_t default_integer;
    const char *default_text;
};

#define DAY_MS INT64_C(86400000)

/* clang-format off */
static const struct rule rules[] = {
    {"endpoint", TEXT, offsetof(struct params, endpoint), 0, 0, 0,
     "http://localhost:9411/api/v2/spans"},
    {"idle-timeout-ms", INTEGER, offsetof(struct params, idle_timeout_ms), 1, DAY_MS, 10000, NULL},
    {"end-timeout-ms", INTEGER, offsetof(struct params, end_timeout_ms), 0, DAY_MS, 50, NULL},
    {"open-timeout-ms", INTEGER, offsetof(struct params, open_timeout_ms), 1, DAY_MS, 60000, NULL},
    {"max-open-spans", INTEGER, offsetof(struct params, max_open_spans), 1, INT64_C(1) << 32,
     1000000, NULL},
    {"max-open-bytes", INTEGER, offsetof(struct params, max_open_bytes), 1 << 20, INT64_C(1) << 40,
     INT64_C(1) << 29, NULL},
    {"batch-spans", INTEGER, offsetof(struct params, batch_spans), 1, 100000, 1000, NULL},
    {"batch-timeout-ms", INTEGER, offsetof(struct params, batch_timeout_ms), 0, DAY_MS, 200, NULL},
    {"retry-timeout-ms", INTEGER, offsetof(struct params, retry_timeout_ms), 0, DAY_MS, 30000, NULL},
    {"clock-correction", BOOLEAN, offsetof(struct params, clock_correction), 0, 1, true, NULL},
    {"closing-annotations", CLOSING, offsetof(struct params, closing), 0, 0, 0, NULL},
};
/* clang-format on */

#define RULES (sizeof(rules) / sizeof(rules[0]))

static void set_text(struct params *params, const struct rule *rule, const char *value)
{
    memcpy((char *)params + rule->offset, &value, sizeof(value));
}

static void set_integer(struct params *params, const struct rule *rule, int64_t value)
{
    memcpy((char *)params + rule->offset, &value, sizeof(value));
}

static void set_boolean(struct params *params, const struct rule *rule, bool value)
{
    memcpy((char *)params + rule->offset, &value, sizeof(value));
}

static const char *type_name(const bt_value *value)
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

static bool read_text(struct params *params, const struct rule *rule, const bt_value *value,
                      struct error *error)
{
    if (!bt_value_is_string(value)) {
        error_set(error, "parameter \"%s\": expected a string, got %s", rule->name,
                  type_name(value));
        return false;
    }
    set_text(params, rule, bt_value_string_get(value));
    return true;
}

/* The command line writes 5 as a signed and +5 as an unsigned integer: both are a number. */
static bool read_integer(struct params *params, const struct rule *rule, const bt_value *value,
                         struct error *error)
{
    int64_t integer;

    if (bt_value_is_signed_integer(value)) {
        integer = bt_value_integer_signed_get(value);
    } else if (bt_value_is_unsigned_integer(value)) {
        const uint64_t given = bt_value_integer_unsigned_get(value);

        integer = given > INT64_MAX ? INT64_MAX : (int64_t)given;
    } else {
        error_set(error, "parameter \"%s\": expected an integer, got %s", rule->name,
                  type_name(value));
        return false;
    }
    if (integer < rule->min || integer > rule->max) {
        error_set(error, "parameter \"%s\": expected %" PRId64 " to %" PRId64 ", got %" PRId64,
                  rule->name, rule->min, rule->max, integer);
        return false;
    }
    set_integer(params, rule, integer);
    return true;
}

static bool read_boolean(struct params *params, const struct rule *rule, const bt_value *value,
                         struct error *error)
{
    if (!bt_value_is_bool(value)) {
        error_set(error, "parameter \"%s\": expected yes or no, got %s", rule->name,
                  type_name(value));
        return false;
    }
    set_boolean(params, rule, bt_value_bool_get(value));
    return true;
}

static bool add_closing(struct closing *closing, const struct rule *rule, struct text text,
                        struct error *error)
{
    if (closing_add(closing, text))
        return true;
    error_set(error,
              "parameter \"%s\": expected up to %d annotations of 1 to %d bytes, got \"%.*s\" as "
              "number %u",
              rule->name, CLOSING_MAX, CLOSING_TEXT_MAX, text.length > 80 ? 80 : (int)text.length,
              text.data, closing->count + 1);
    return false;
}

/* An array of strings, or one string with commas in between. */
static bool read_closing(struct params *params, const struct rule *rule, const bt_value *value,
                         struct error *error)
{
    const uint64_t length = bt_value_is_array(value) ? bt_value_array_get_length(value) : 0;
    const char *text;

    if (bt_value_is_string(value)) {
        for (text = bt_value_string_get(value);; text++) {
            const size_t size = strcspn(text, ",");

            if (!add_closing(&params->closing, rule, (struct text){text, size}, error))
                return false;
            text += size;
            if (*text == '\0')
                return true;
        }
    }
    for (uint64_t i = 0; i < length; i++) {
        const bt_value *element = bt_value_array_borrow_element_by_index_const(value, i);

        if (!bt_value_is_string(element)) {
            error_set(error, "parameter \"%s\": expected strings in the array, got %s", rule->name,
                      type_name(element));
            return false;
        }
        if (!add_closing(&params->closing, rule, text_of(bt_value_string_get(element)), error))
            return false;
    }
    if (length == 0)
        error_set(error, "parameter \"%s\": expected an array of strings or a string, got %s",
                  rule->name, bt_value_is_array(value) ? "an empty array" : type_name(value));
    return length > 0;
}

static bool read_value(struct params *params, const struct rule *rule, const bt_value *value,
                       struct error *error)
{
    switch (rule->type) {
    case TEXT:
        return read_text(params, rule, value, error);
    case INTEGER:
        return read_integer(params, rule, value, error);
    case BOOLEAN:
        return read_boolean(params, rule, value, error);
    case CLOSING:
        return read_closing(params, rule, value, error);
    }
    return false;
}

struct reading {
    struct params *params;
    struct error *error;
    bool failed;
};

static void list_names(char *names, size_t size)
{
    size_t length = 0;

    for (size_t i = 0; i < RULES && length < size; i++)
        length +=
            (size_t)snprintf(names + length, size - length, "%s%s", i ? ", " : "", rules[i].name);
}

static bt_value_map_foreach_entry_const_func_status read_entry(const char *key,
                                                               const bt_value *value, void *context)
{
    struct reading *reading = context;
    char names[512];

    for (size_t i = 0; i < RULES; i++) {
        if (strcmp(key, rules[i].name) != 0)
            continue;
        reading->failed = !read_value(reading->params, &rules[i], value, reading->error);
        return reading->failed ? BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT
                               : BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
    }
    list_names(names, sizeof(names));
    error_set(reading->error, "parameter \"%s\" is not known: there are %s", key, names);
    reading->failed = true;
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

bool params_read(struct params *params, const bt_value *map, struct error *error)
{
    struct reading reading = {.params = params, .error = error};

    *params = (struct params){.closing = {.count = 0}};
    for (size_t i = 0; i < RULES; i++) {
        if (rules[i].type == TEXT)
            set_text(params, &rules[i], rules[i].default_text);
        else if (rules[i].type == INTEGER)
            set_integer(params, &rules[i], rules[i].default_integer);
        else if (rules[i].type == BOOLEAN)
            set_boolean(params, &rules[i], rules[i].default_integer != 0);
    }
    (void)bt_value_map_foreach_entry_const(map, read_entry, &reading);
    return !reading.failed;
}
