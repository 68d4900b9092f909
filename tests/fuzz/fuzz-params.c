/*
 * Fuzzes the reading of parameters with maps of any names and values: what is accepted is in range
 * and was given so, what is refused is named.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/params_map.h"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

enum type { TEXT, INTEGER, CHOICE, BOOLEAN, CLOSING };

#define MIB        (INT64_C(1) << 20)
#define DAY        INT64_C(86400000)
#define AT(member) offsetof(struct params, member)

static const struct known {
    const char *name;
    enum type type;
    size_t offset;
    int64_t min, max; /* of a choice: the number of its last value */
} known[] = {
    {"endpoint", TEXT, AT(exporter.transport.endpoint), 0, 0},
    {"format", CHOICE, AT(exporter.format), 0, FORMATS - 1},
    {"kafka-file", TEXT, AT(exporter.transport.kafka_file), 0, 0},
    {"requests", INTEGER, AT(exporter.requests), 1, 64},
    {"tail-sampling", TEXT, AT(tail_sampling), 0, 0},
    {"join-wait-ms", INTEGER, AT(join_wait_ms), 0, DAY},
    {"join-max-bytes", INTEGER, AT(join_max_bytes), MIB, MIB *MIB},
    {"join-skew-us", INTEGER, AT(join_skew_us), 0, DAY},
    {"tail-wait-ms", INTEGER, AT(tail_wait_ms), 1, DAY},
    {"tail-max-bytes", INTEGER, AT(tail_max_bytes), MIB, MIB *MIB},
    {"tls-ca", TEXT, AT(exporter.transport.tls_ca), 0, 0},
    {"tls-cert", TEXT, AT(exporter.transport.tls_cert), 0, 0},
    {"tls-key", TEXT, AT(exporter.transport.tls_key), 0, 0},
    {"bearer-token-file", TEXT, AT(exporter.transport.credentials.bearer_file), 0, 0},
    {"bearer-token-env", TEXT, AT(exporter.transport.credentials.bearer_env), 0, 0},
    {"basic-auth-file", TEXT, AT(exporter.transport.credentials.basic_file), 0, 0},
    {"basic-auth-env", TEXT, AT(exporter.transport.credentials.basic_env), 0, 0},
    {"idle-timeout-ms", INTEGER, AT(idle_timeout_ms), 1, DAY},
    {"end-timeout-ms", INTEGER, AT(end_timeout_ms), 0, DAY},
    {"open-timeout-ms", INTEGER, AT(open_timeout_ms), 1, DAY},
    {"max-open-spans", INTEGER, AT(max_open_spans), 1, 4096 * MIB},
    {"max-open-bytes", INTEGER, AT(max_open_bytes), MIB, MIB *MIB},
    {"batch-spans", INTEGER, AT(exporter.batch_spans), 1, 100000},
    {"batch-bytes", INTEGER, AT(exporter.batch_bytes), 4096, 64 * MIB},
    {"batch-timeout-ms", INTEGER, AT(exporter.batch_timeout_ms), 0, DAY},
    {"queue-bytes", INTEGER, AT(exporter.queue_bytes), 8192, MIB *MIB},
    {"request-timeout-ms", INTEGER, AT(exporter.transport.request_timeout_ms), 1, DAY},
    {"retry-timeout-ms", INTEGER, AT(exporter.retry_timeout_ms), 0, DAY},
    {"flush-timeout-ms", INTEGER, AT(exporter.flush_timeout_ms), 0, DAY},
    {"on-full", CHOICE, AT(exporter.on_full), 0, ON_FULL_DROP_OLDEST},
    {"compression", CHOICE, AT(exporter.transport.compression), 0, COMPRESSION_ZSTD},
    {"spool", TEXT, AT(exporter.spool.folder), 0, 0},
    {"spool-bytes", INTEGER, AT(exporter.spool.bytes), MIB, MIB *MIB},
    {"spool-age-ms", INTEGER, AT(exporter.spool.age_ms), 1, 366 * DAY},
    {"spool-fsync", CHOICE, AT(exporter.spool.fsync), 0, SPOOL_FSYNC_NEVER},
    {"spool-senders", INTEGER, AT(exporter.spool.senders), 1, 64},
    {"closing-annotations", CLOSING, AT(closing), 0, 0},
    {"clock-correction", BOOLEAN, AT(clock_correction), 0, 1},
    {"require-collector", BOOLEAN, AT(exporter.require_collector), 0, 1},
    {"only-traces", TEXT, AT(only_traces), 0, 0},
    {"only-found", TEXT, AT(only_found), 0, 0},
    {"stats-file", TEXT, AT(stats_file), 0, 0},
    {"stats-period-ms", INTEGER, AT(stats_period_ms), 10, DAY},
    {"prometheus-listen", TEXT, AT(prometheus_listen), 0, 0},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static const char *take_string(struct input *source, char *string, size_t size)
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

/* A name, or nearly one. Not any name: GLib, which babeltrace2 uses for maps, keeps each for ever.
 */
static const char *take_name(struct input *source, char *name, size_t size)
{
    static char long_name[2000];
    const uint64_t choice = take(source, 1);
    const char *right = known[choice % KNOWN].name;

    if (choice < 240)
        return right;
    if (choice == 255)
        return memset(long_name, 'x', sizeof(long_name) - 1);
    snprintf(name, size, "%s", right);
    name[take(source, 1) % strlen(right)] = "ax-\xff"[take(source, 1) % 4];
    return name;
}

static int64_t take_integer(struct input *source)
{
    static const int64_t edges[] = {4096,    1,      -1,     86400000,  86400001,
                                    1 << 20, 100000, 100001, INT64_MAX, INT64_MIN};
    const uint64_t choice = take(source, 1);

    return choice < 128 ? edges[choice % (sizeof(edges) / sizeof(edges[0]))]
                        : (int64_t)take(source, 8);
}

/* Strings mostly. */
static void insert_array(struct input *source, bt_value *map, const char *name)
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

static void insert(struct input *source, bt_value *map)
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

/* What the member says, whatever its type. */
static int64_t integer_of(const struct params *params, const struct known *entry)
{
    const char *member = (const char *)params + entry->offset;
    int64_t integer;
    int choice;

    if (entry->type == BOOLEAN)
        return *(const bool *)member;
    if (entry->type == CHOICE) {
        memcpy(&choice, member, sizeof(choice));
        return choice;
    }
    memcpy(&integer, member, sizeof(integer));
    return integer;
}

static bool is_given(const bt_value *value, const struct params *params, const struct known *entry)
{
    const char *text;

    switch (entry->type) {
    case TEXT:
        memcpy(&text, (const char *)params + entry->offset, sizeof(text));
        return text == bt_value_string_get(value);
    case BOOLEAN:
        return bt_value_bool_get(value) == integer_of(params, entry);
    case CHOICE:
        return bt_value_is_string(value);
    case CLOSING:
        return params->closing.count >= 1 && params->closing.count <= CLOSING_MAX &&
               (bt_value_is_string(value) ||
                bt_value_array_get_length(value) == params->closing.count);
    case INTEGER:
        break;
    }
    if (bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value) == integer_of(params, entry);
    return bt_value_is_unsigned_integer(value) &&
           bt_value_integer_unsigned_get(value) == (uint64_t)integer_of(params, entry);
}

static void require_accepted(const struct params *params, const bt_value *map)
{
    uint64_t found = 0;

    for (size_t i = 0; i < KNOWN; i++) {
        const bt_value *value = bt_value_map_borrow_entry_value_const(map, known[i].name);

        if (known[i].type != TEXT && known[i].type != CLOSING)
            REQUIRE(integer_of(params, &known[i]) >= known[i].min &&
                    integer_of(params, &known[i]) <= known[i].max);
        if (value)
            REQUIRE(is_given(value, params, &known[i]));
        found += value != NULL;
    }
    REQUIRE(found == bt_value_map_get_size(map));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input source = {data, data + size};
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

#pragma clang attribute pop
