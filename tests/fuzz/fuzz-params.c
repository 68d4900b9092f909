/*
 * Fuzzes the reading of parameters with maps of any names and values. Accepted values are in range
 * and as given; the message for a refused value begins with a parameter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/params.h"

static const struct param_rule *rules;
static size_t rule_count;

static const char *take_string(struct fuzz *source, char *string, size_t size)
{
    static const char *const choices[] = {"auto",  "block", "drop-oldest", "none",  "gzip",
                                          "cr,ss", ",",     "second",      "batch", "never",
                                          "zstd",  "otlp",  "kafka://a/b"};
    const uint64_t length = take(source, 1);
    const struct text text = take_bytes(source, length % (size - 1));

    if (length < sizeof(choices) / sizeof(choices[0]))
        return choices[length];
    if (text.length)
        memcpy(string, text.data, text.length);
    string[text.length] = '\0';
    return string;
}

/* Returns a name, or nearly one. Not any name: GLib, which babeltrace2 uses for maps, stores each
 * name for ever. */
static const char *take_name(struct fuzz *source, char *name, size_t size)
{
    static char long_name[2000];
    const uint64_t choice = take(source, 1);
    const char *right = rules[choice % rule_count].name;

    if (choice < 240)
        return right;
    if (choice == 255)
        return memset(long_name, 'x', sizeof(long_name) - 1);
    snprintf(name, size, "%s", right);
    name[take(source, 1) % strlen(right)] = "ax-\xff"[take(source, 1) % 4];
    return name;
}

static int64_t take_integer(struct fuzz *source)
{
    static const int64_t edges[] = {4096,    1,      -1,     86400000,  86400001,
                                    1 << 20, 100000, 100001, INT64_MAX, INT64_MIN};
    const uint64_t choice = take(source, 1);

    return choice < 128 ? edges[choice % (sizeof(edges) / sizeof(edges[0]))]
                        : (int64_t)take(source, 8);
}

/* Inserts an array, mostly of strings. */
static void insert_array(struct fuzz *source, bt_value *map, const char *name)
{
    char string[128];
    bt_value *array;

    if (bt_value_map_insert_empty_array_entry(map, name, &array) !=
        BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        return;
    for (uint64_t count = take(source, 1) % 20; count; count--) {
        if (take(source, 1) == 255)
            bt_value_array_append_bool_element(array, BT_TRUE);
        else
            bt_value_array_append_string_element(array,
                                                 take_string(source, string, sizeof(string)));
    }
}

static void insert(struct fuzz *source, bt_value *map)
{
    char name_text[64], string[512];
    const char *name = take_name(source, name_text, sizeof(name_text));

    switch (take(source, 1) % 12) {
    case 0:
        bt_value_map_insert_bool_entry(map, name, BT_TRUE);
        break;
    case 1:
        bt_value_map_insert_real_entry(map, name, 1.5);
        break;
    case 2:
        insert_array(source, map, name);
        break;
    case 3:
        bt_value_map_insert_empty_map_entry(map, name, NULL);
        break;
    case 4:
        bt_value_map_insert_entry(map, name, bt_value_null);
        break;
    case 5:
    case 6:
        bt_value_map_insert_string_entry(map, name, take_string(source, string, sizeof(string)));
        break;
    case 7:
    case 8:
        bt_value_map_insert_unsigned_integer_entry(map, name, (uint64_t)take_integer(source));
        break;
    default:
        bt_value_map_insert_signed_integer_entry(map, name, take_integer(source));
    }
}

/* Returns the member's value as an integer, for any of its types. */
static int64_t integer_of(const struct params *params, const struct param_rule *rule)
{
    const char *member = (const char *)params + rule->offset;
    int64_t integer;
    int choice;

    if (rule->type == PARAM_BOOLEAN)
        return *(const bool *)member;
    if (rule->type == PARAM_CHOICE) {
        memcpy(&choice, member, sizeof(choice));
        return choice;
    }
    memcpy(&integer, member, sizeof(integer));
    return integer;
}

static bool is_given(const bt_value *value, const struct params *params,
                     const struct param_rule *rule)
{
    const char *text;

    switch (rule->type) {
    case PARAM_TEXT:
        memcpy(&text, (const char *)params + rule->offset, sizeof(text));
        return text == bt_value_string_get(value);
    case PARAM_BOOLEAN:
        return bt_value_bool_get(value) == integer_of(params, rule);
    case PARAM_CHOICE:
        return bt_value_is_string(value);
    case PARAM_CLOSING:
        return params->closing.count >= 1 && params->closing.count <= CLOSING_MAX &&
               (bt_value_is_string(value) ||
                bt_value_array_get_length(value) == params->closing.count);
    case PARAM_INTEGER:
        break;
    }
    if (bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value) == integer_of(params, rule);
    return bt_value_is_unsigned_integer(value) &&
           bt_value_integer_unsigned_get(value) == (uint64_t)integer_of(params, rule);
}

static void require_accepted(const struct params *params, const bt_value *map)
{
    uint64_t found = 0;

    for (size_t i = 0; i < rule_count; i++) {
        const struct param_rule *rule = &rules[i];
        const bt_value *value = bt_value_map_borrow_entry_value_const(map, rule->name);
        int64_t most = rule->max;

        for (int at = 0; rule->choices && rule->choices[at]; at++)
            most = at;
        if (rule->type == PARAM_INTEGER || rule->type == PARAM_CHOICE)
            REQUIRE(integer_of(params, rule) >= rule->min && integer_of(params, rule) <= most);
        if (value)
            REQUIRE(is_given(value, params, rule));
        found += value != NULL;
    }
    REQUIRE(found == bt_value_map_get_size(map));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};
    bt_value *map = bt_value_map_create();
    struct params params;
    struct error error;

    rules = params_table(&rule_count);
    memset(&error, 0xa5, sizeof(error));
    memset(&params, 0xa5, sizeof(params));
    while (source.at < source.end)
        insert(&source, map);
    if (params_read(&params, map, &error)) {
        require_accepted(&params, map);
    } else {
        REQUIRE(memchr(error.text, '\0', sizeof(error.text)));
        REQUIRE(strncmp(error.text, "parameter \"", 11) == 0);
    }
    bt_value_put_ref(map);
    return 0;
}
