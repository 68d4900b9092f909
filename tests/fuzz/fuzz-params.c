/*
 * Fuzzes the reading of parameters with maps of any names and values: what is accepted is in range
 * and was given so, what is refused is named.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "params.h"

static const struct {
    const char *name;
    size_t offset;
    int64_t min, max;
} integers[] = {
    {"idle-timeout-ms", offsetof(struct params, idle_timeout_ms), 1, 86400000},
    {"end-timeout-ms", offsetof(struct params, end_timeout_ms), 0, 86400000},
    {"open-timeout-ms", offsetof(struct params, open_timeout_ms), 1, 86400000},
    {"max-open-spans", offsetof(struct params, max_open_spans), 1, INT64_C(1) << 32},
    {"max-open-bytes", offsetof(struct params, max_open_bytes), 1 << 20, INT64_C(1) << 40},
    {"batch-spans", offsetof(struct params, batch_spans), 1, 100000},
    {"batch-timeout-ms", offsetof(struct params, batch_timeout_ms), 0, 86400000},
    {"retry-timeout-ms", offsetof(struct params, retry_timeout_ms), 0, 86400000},
};

#define INTEGERS (sizeof(integers) / sizeof(integers[0]))

static void take_string(struct source *source, char *string, size_t size)
{
    const uint64_t length = take(source, 1);
    const struct text text = take_bytes(source, length % (size - 1));

    if (text.length)
        memcpy(string, text.data, text.length);
    string[text.length] = '\0';
}

/* A name, or nearly one. Not any name: GLib, which babeltrace2 uses for maps, keeps each for ever.
 */
static const char *take_name(struct source *source, char *name, size_t size)
{
    static char long_name[2000];
    const uint64_t choice = take(source, 1);
    const char *known =
        choice % (INTEGERS + 1) ? integers[choice % (INTEGERS + 1) - 1].name : "endpoint";

    if (choice < 200)
        return known;
    if (choice == 255)
        return memset(long_name, 'x', sizeof(long_name) - 1);
    snprintf(name, size, "%s", known);
    name[take(source, 1) % strlen(known)] = "aex-Z\xff\n"[take(source, 1) % 8];
    return name;
}

static int64_t take_integer(struct source *source)
{
    static const int64_t edges[] = {0,       1,      -1,     86400000,  86400001,
                                    1 << 20, 100000, 100001, INT64_MAX, INT64_MIN};
    const uint64_t choice = take(source, 1);

    return choice < 128 ? edges[choice % (sizeof(edges) / sizeof(edges[0]))]
                        : (int64_t)take(source, 8);
}

static void insert(struct source *source, bt_value *map)
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
        bt_value_map_insert_empty_array_entry(map, name, NULL);
        break;
    case 3:
        bt_value_map_insert_empty_map_entry(map, name, NULL);
        break;
    case 4:
        bt_value_map_insert_entry(map, name, bt_value_null);
        break;
    case 5:
    case 6:
        take_string(source, string, sizeof(string));
        bt_value_map_insert_string_entry(map, name, string);
        break;
    case 7:
    case 8:
        bt_value_map_insert_unsigned_integer_entry(map, name, (uint64_t)take_integer(source));
        break;
    default:
        bt_value_map_insert_signed_integer_entry(map, name, take_integer(source));
    }
}

static bool is_given(const bt_value *map, const char *name, int64_t integer)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(map, name);

    if (!value)
        return true;
    if (bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value) == integer;
    return bt_value_is_unsigned_integer(value) &&
           bt_value_integer_unsigned_get(value) == (uint64_t)integer;
}

static void require_accepted(const struct params *params, const bt_value *map)
{
    const bt_value *endpoint = bt_value_map_borrow_entry_value_const(map, "endpoint");
    uint64_t known = endpoint != NULL;

    if (endpoint)
        REQUIRE(params->endpoint == bt_value_string_get(endpoint));
    REQUIRE(params->endpoint);
    for (size_t i = 0; i < INTEGERS; i++) {
        const int64_t *value =
            (const int64_t *)(const void *)((const char *)params + integers[i].offset);

        known += bt_value_map_has_entry(map, integers[i].name);
        REQUIRE(*value >= integers[i].min && *value <= integers[i].max);
        REQUIRE(is_given(map, integers[i].name, *value));
    }
    REQUIRE(known == bt_value_map_get_size(map));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {data, data + size};
    bt_value *map = bt_value_map_create();
    struct params params;
    struct error error;

    memset(&error, 0xa5, sizeof(error));
    memset(&params, 0xa5, sizeof(params));
    while (source.at < source.end)
        insert(&source, map);
    if (params_read(&params, map, &error)) {
        require_accepted(&params, map);
    } else {
        REQUIRE(memchr(error.text, '\0', sizeof(error.text)));
        REQUIRE(strncmp(error.text, "parameter \"", 11) == 0 && strstr(error.text, "\""));
    }
    bt_value_put_ref(map);
    return 0;
}
