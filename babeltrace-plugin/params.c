/* SPDX-License-Identifier: BSD-2-Clause */
#include "params.h"

#include "babeltrace-plugin/deliver/kafka_conf.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *const on_full[] = {"auto", "block", "drop-oldest", NULL};
static const char *const spool_fsync[] = {"second", "batch", "never", NULL};
static const char *const compression[] = {"auto", "none", "gzip", "zstd", NULL};
static const char *const format[] = {"auto", "zipkin", "otlp", NULL};

/* clang-format off */
#define PARAM_OFFSET(member) offsetof(struct params, member)
#define TEXT_PARAM(name, member, value) \
    {name, PARAM_TEXT, PARAM_OFFSET(member), 0, 0, 0, value, NULL}
#define INTEGER_PARAM(name, member, min, max, value) \
    {name, PARAM_INTEGER, PARAM_OFFSET(member), min, max, value, NULL, NULL}
#define CHOICE_PARAM(name, member, choices, value) \
    {name, PARAM_CHOICE, PARAM_OFFSET(member), 0, 0, value, NULL, choices}
#define BOOLEAN_PARAM(name, member, value) \
    {name, PARAM_BOOLEAN, PARAM_OFFSET(member), 0, 0, value, NULL, NULL}

static const struct param_rule rules[] = {
    TEXT_PARAM("endpoint", exporter.transport.endpoint, NULL), /* default: by the format */
    CHOICE_PARAM("format", exporter.format, format, FORMAT_AUTO),
    INTEGER_PARAM("idle-timeout-ms", idle_timeout_ms, 1, DAY_MS, 10000),
    INTEGER_PARAM("end-timeout-ms", end_timeout_ms, 0, DAY_MS, 50),
    INTEGER_PARAM("open-timeout-ms", open_timeout_ms, 1, DAY_MS, 60000),
    INTEGER_PARAM("max-open-spans", max_open_spans, 1, 4096 * MIB, 1000000),
    INTEGER_PARAM("max-open-bytes", max_open_bytes, MIB, MIB * MIB, 512 * MIB),
    INTEGER_PARAM("batch-spans", exporter.batch_spans, 1, 100000, 2000),
    INTEGER_PARAM("batch-bytes", exporter.batch_bytes, 4 * KIB, 64 * MIB, MIB),
    INTEGER_PARAM("batch-timeout-ms", exporter.batch_timeout_ms, 0, DAY_MS, 5),
    INTEGER_PARAM("queue-bytes", exporter.queue_bytes, 8 * KIB, MIB * MIB, 64 * MIB),
    INTEGER_PARAM("requests", exporter.requests, 1, 64, 1),
    CHOICE_PARAM("on-full", exporter.on_full, on_full, ON_FULL_AUTO),
    INTEGER_PARAM("request-timeout-ms", exporter.transport.request_timeout_ms, 1, DAY_MS, 15000),
    INTEGER_PARAM("retry-timeout-ms", exporter.retry_timeout_ms, 0, DAY_MS, 60000),
    INTEGER_PARAM("flush-timeout-ms", exporter.flush_timeout_ms, 0, DAY_MS, 5000),
    TEXT_PARAM("spool", exporter.spool.folder, NULL),
    INTEGER_PARAM("spool-bytes", exporter.spool.bytes, MIB, MIB * MIB, 1024 * MIB),
    INTEGER_PARAM("spool-age-ms", exporter.spool.age_ms, 1, 366 * DAY_MS, 3 * DAY_MS),
    CHOICE_PARAM("spool-fsync", exporter.spool.fsync, spool_fsync, SPOOL_FSYNC_SECOND),
    INTEGER_PARAM("spool-senders", exporter.spool.senders, 1, 64, 8),
    BOOLEAN_PARAM("require-collector", exporter.require_collector, true),
    CHOICE_PARAM("compression", exporter.transport.compression, compression, COMPRESSION_AUTO),
    TEXT_PARAM("kafka-file", exporter.transport.kafka_file, NULL),
    TEXT_PARAM("tls-ca", exporter.transport.tls_ca, NULL),
    TEXT_PARAM("tls-cert", exporter.transport.tls_cert, NULL),
    TEXT_PARAM("tls-key", exporter.transport.tls_key, NULL),
    TEXT_PARAM("bearer-token-file", exporter.transport.credentials.bearer_file, NULL),
    TEXT_PARAM("bearer-token-env", exporter.transport.credentials.bearer_env, NULL),
    TEXT_PARAM("basic-auth-file", exporter.transport.credentials.basic_file, NULL),
    TEXT_PARAM("basic-auth-env", exporter.transport.credentials.basic_env, NULL),
    INTEGER_PARAM("from-time", from_time, 0, INT64_MAX - 1, 0),
    INTEGER_PARAM("from-events", from_events, 0, INT64_MAX - 1, 0),
    TEXT_PARAM("sent-file", sent_file, NULL),
    TEXT_PARAM("rules", rules, NULL),
    TEXT_PARAM("rules-report", rules_report, NULL),
    TEXT_PARAM("tail-sampling", tail_sampling, NULL),
    INTEGER_PARAM("tail-wait-ms", tail_wait_ms, 1, DAY_MS, 2000),
    INTEGER_PARAM("tail-max-bytes", tail_max_bytes, MIB, MIB * MIB, 256 * MIB),
    INTEGER_PARAM("join-wait-ms", join_wait_ms, 0, DAY_MS, 2000),
    INTEGER_PARAM("join-max-bytes", join_max_bytes, MIB, MIB * MIB, 128 * MIB),
    INTEGER_PARAM("join-skew-us", join_skew_us, 0, DAY_MS, 1000),
    INTEGER_PARAM("host-min-ms", host_min_ms, -1, DAY_MS, 100),
    TEXT_PARAM("stats-file", stats_file, NULL),
    INTEGER_PARAM("stats-period-ms", stats_period_ms, 10, DAY_MS, 5000),
    TEXT_PARAM("prometheus-listen", prometheus_listen, NULL),
    TEXT_PARAM("statistics-file", statistics_file, NULL),
    BOOLEAN_PARAM("clock-correction", clock_correction, true),
    {.name = "closing-annotations", .type = PARAM_CLOSING, .offset = offsetof(struct params, closing)},
};
/* clang-format on */

#define PARAM_COUNT (sizeof(rules) / sizeof(rules[0]))

static void *params_member_of(struct params *params, const struct param_rule *rule)
{
    return (char *)params + rule->offset;
}

static void params_note_given(struct params *params, const struct param_rule *rule)
{
    static_assert(PARAM_COUNT <= 64, "params.given has a bit for each parameter");
    if (rule >= rules && rule < rules + PARAM_COUNT) /* only for keys of this table */
        params->given |= UINT64_C(1) << (rule - rules);
}

static void params_set_text(struct params *params, const struct param_rule *rule, const char *value)
{
    memcpy(params_member_of(params, rule), &value, sizeof(value));
}

static void params_set_integer(struct params *params, const struct param_rule *rule, int64_t value)
{
    const int choice = (int)value; /* an enum is an int here: see the assertion */
    const bool boolean = value != 0;

    static_assert(sizeof(enum on_full) == sizeof(int) && sizeof(enum compression) == sizeof(int) &&
                      sizeof(enum protocol_format) == sizeof(int) &&
                      sizeof(enum spool_fsync) == sizeof(int),
                  "choices are copied as int");
    switch (rule->type) {
    case PARAM_CHOICE:
        memcpy(params_member_of(params, rule), &choice, sizeof(choice));
        break;
    case PARAM_BOOLEAN:
        memcpy(params_member_of(params, rule), &boolean, sizeof(boolean));
        break;
    default:
        memcpy(params_member_of(params, rule), &value, sizeof(value));
        break;
    }
}

static bool params_read_text(struct params *params, const struct param_rule *rule, const char *text,
                             struct error *error)
{
    if (rule->max && strlen(text) > (size_t)rule->max)
        return error_set(error, "parameter \"%s\": expected up to %" PRId64 " bytes", rule->name,
                         rule->max);
    params_set_text(params, rule, text);
    return true;
}

static bool params_read_integer(struct params *params, const struct param_rule *rule,
                                int64_t integer, struct error *error)
{
    if (integer < rule->min || integer > rule->max)
        return error_set(error,
                         "parameter \"%s\": expected %" PRId64 " to %" PRId64 ", got %" PRId64,
                         rule->name, rule->min, rule->max, integer);
    params_set_integer(params, rule, integer);
    return true;
}

static bool params_read_choice(struct params *params, const struct param_rule *rule,
                               const char *text, struct error *error)
{
    char names[128];
    size_t length = 0;

    for (int i = 0; rule->choices[i]; i++) {
        if (strcmp(text, rule->choices[i]) == 0) {
            params_set_integer(params, rule, i);
            return true;
        }
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s\"%s\"",
                                   i ? ", " : "", rule->choices[i]);
    }
    return error_set(error, "parameter \"%s\": expected one of %s, got %s", rule->name, names,
                     text);
}

static bool params_add_closing(struct params *params, const struct param_rule *rule,
                               struct text text, struct error *error)
{
    if (closing_add(&params->closing, text))
        return true;
    return error_set(
        error,
        "parameter \"%s\": expected up to %d annotations of 1 to %d bytes, got \"%.*s\" as "
        "number %u",
        rule->name, CLOSING_MAX, CLOSING_TEXT_MAX, text.length > 80 ? 80 : (int)text.length,
        text.data, params->closing.count + 1);
}

/* Reads a list with commas. */
static bool params_read_closing(struct params *params, const struct param_rule *rule,
                                const char *text, struct error *error)
{
    for (;; text++) {
        const size_t size = strcspn(text, ",");

        if (!params_add_closing(params, rule, (struct text){text, size}, error))
            return false;
        text += size;
        if (*text == '\0')
            return true;
    }
}

const struct param_rule *params_table(size_t *count)
{
    *count = PARAM_COUNT;
    return rules;
}

void params_begin(struct params *params)
{
    *params = (struct params){.closing = {.count = 0}};
    for (size_t i = 0; i < PARAM_COUNT; i++) {
        if (rules[i].type == PARAM_TEXT)
            params_set_text(params, &rules[i], rules[i].default_text);
        else if (rules[i].type != PARAM_CLOSING)
            params_set_integer(params, &rules[i], rules[i].default_integer);
    }
}

bool params_set(struct params *params, const struct param_rule *rule,
                const struct param_value *value, struct error *error)
{
    params_note_given(params, rule);
    switch (rule->type) {
    case PARAM_TEXT:
        return params_read_text(params, rule, value->text, error);
    case PARAM_INTEGER:
        return params_read_integer(params, rule, value->integer, error);
    case PARAM_CHOICE:
        return params_read_choice(params, rule, value->text, error);
    case PARAM_BOOLEAN:
        params_set_integer(params, rule, value->integer != 0);
        return true;
    case PARAM_CLOSING:
        return params_read_closing(params, rule, value->text, error);
    }
    return false;
}

bool param_check(const struct param_rule *rule, const struct param_value *value,
                 struct error *error)
{
    struct params scratch = {.closing = {.count = 0}};

    return params_set(&scratch, rule, value, error);
}

static const struct param_rule *params_find(const char *name)
{
    size_t i = 0;

    while (i < PARAM_COUNT && strcmp(rules[i].name, name) != 0)
        i++;
    return i < PARAM_COUNT ? &rules[i] : NULL;
}

static bool params_is_given(const struct params *params, const char *name)
{
    return params->given & UINT64_C(1) << (params_find(name) - rules);
}

/* Sets defaults for Kafka. A batch becomes a message for each partition, or several if it is large,
 * and large messages are cheaper. librdkafka retries for request-timeout-ms: long enough for the
 * restart of a broker. */
static void params_set_kafka_defaults(struct params *params)
{
    struct exporter_options *options = &params->exporter;

    if (!params_is_given(params, "batch-spans"))
        options->batch_spans = 8000;
    if (!params_is_given(params, "batch-bytes"))
        options->batch_bytes = 8 * MIB;
    if (!params_is_given(params, "batch-timeout-ms"))
        options->batch_timeout_ms = 20;
    if (!params_is_given(params, "request-timeout-ms"))
        options->transport.request_timeout_ms =
            options->retry_timeout_ms > 60000 || options->retry_timeout_ms == 0
                ? 30000
                : (options->retry_timeout_ms + 1) / 2;
}

void params_end(struct params *params)
{
    struct exporter_options *options = &params->exporter;

    if (is_kafka_url(options->transport.endpoint))
        params_set_kafka_defaults(params);
    if (!params_is_given(params, "batch-bytes") && options->batch_bytes > options->spool.bytes / 2)
        options->batch_bytes = options->spool.bytes / 2;
}

/* ---- combinations of parameters -------------------------------------------------------------- */

static bool params_fits_kafka(const struct params *params, struct error *error)
{
    const struct transport_options *options = &params->exporter.transport;
    const struct credential_sources *credentials = &options->credentials;
    const bool is_kafka = is_kafka_url(options->endpoint);

    if (!is_kafka && options->kafka_file)
        error_set(error, "kafka-file needs endpoint=\"kafka://...\"");
    else if (is_kafka && (options->tls_ca || options->tls_cert || options->tls_key ||
                          credentials->bearer_file || credentials->bearer_env ||
                          credentials->basic_file || credentials->basic_env))
        error_set(error, "tls-*, bearer-token-* and basic-auth-* need http(s)://: for Kafka, set "
                         "its own options in kafka-file");
    else
        return true;
    return false;
}

bool params_fit(const struct params *params, struct error *error)
{
    if (params->rules_report && !params->rules)
        return error_set(error, "rules-report needs rules=\"PATH\"");
    /* the spool adds a few bytes for each span of a batch */
    if (params->exporter.batch_bytes > params->exporter.spool.bytes / 2)
        return error_set(error, "batch-bytes needs a spool-bytes of twice its size: the spool must "
                                "have room for a batch");
    return params_fits_kafka(params, error);
}

/* ---- babeltrace2's values ------------------------------------------------------------------- */

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

/* Reads a signed or an unsigned integer: on babeltrace2's command line, 5 is signed and +5 is
 * unsigned. */
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
    static const char *const expected[] = {[PARAM_TEXT] = "a string",
                                           [PARAM_INTEGER] = "an integer",
                                           [PARAM_BOOLEAN] = "yes or no",
                                           [PARAM_CLOSING] = "an array of strings or a string"};
    struct param_value plain = {.text = NULL};
    bool has_type = bt_value_is_string(value);

    if (rule->type == PARAM_CLOSING && bt_value_is_array(value))
        return params_map_read_closing(params, rule, value, error);
    if (has_type)
        plain.text = bt_value_string_get(value);
    else if (rule->type == PARAM_CHOICE)
        plain.text =
            params_map_type_name(value); /* no choice has this name, so the error shows it */
    else if (bt_value_is_bool(value))
        plain.integer = bt_value_bool_get(value);
    if (rule->type == PARAM_INTEGER)
        has_type = params_map_get_integer(value, &plain.integer);
    else if (rule->type == PARAM_BOOLEAN)
        has_type = bt_value_is_bool(value);
    if (!has_type && rule->type != PARAM_CHOICE)
        return params_map_refuse(rule, expected[rule->type], value, error);
    return params_set(params, rule, &plain, error);
}

struct params_reading {
    struct params *params;
    struct error *error;
    bool has_failed;
};

static bt_value_map_foreach_entry_const_func_status
params_map_read_entry(const char *key, const bt_value *value, void *context)
{
    struct params_reading *reading = context;
    const struct param_rule *rule = params_find(key);
    char names[1024] = "";

    if (rule) {
        reading->has_failed = !params_map_read_value(reading->params, rule, value, reading->error);
        return reading->has_failed ? BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT
                                   : BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
    }
    for (size_t i = 0; i < PARAM_COUNT; i++)
        string_list_add(names, sizeof(names), rules[i].name);
    error_set(reading->error, "parameter \"%s\" is not known: there are %s", key, names);
    reading->has_failed = true;
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

bool params_read(struct params *params, const bt_value *map, struct error *error)
{
    struct params_reading reading = {.params = params, .error = error};

    params_begin(params);
    (void)bt_value_map_foreach_entry_const(map, params_map_read_entry, &reading);
    params_end(params);
    return !reading.has_failed;
}
