/* SPDX-License-Identifier: BSD-2-Clause */
#include "keys.h"

#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/utf8.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "tracepoints/format/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOUR_US INT64_C(3600000000)

static const char *const sections[KEY_SECTIONS] = {"", "live", "agent", "stat", "work"};
enum { ALL, LIVE, AGENT, STAT, WORK };

static const char *const levels[] = {"none", "error", "warning", "info", NULL};
enum { LEVEL_WARNING = 2 };
static const char *const send_choices[] = {"slow", "all", NULL};
static const char *const keep_from_choices[] = {"cluster", "local", "none", NULL};
enum { AT_ONCE = KEY_AT_ONCE, AT_START = KEY_AT_START, IN_SESSION = KEY_IN_SESSION };

struct key {
    struct param_rule rule;
    int section;
    int when;
};

/* clang-format off */
#define A_TEXT(section, when, name, max, value) \
    {{name, PARAM_TEXT, 0, 0, max, 0, value, NULL}, section, when}
#define AN_INTEGER(section, when, name, min, max, value) \
    {{name, PARAM_INTEGER, 0, min, max, value, NULL, NULL}, section, when}
#define A_CHOICE(section, when, name, choices, value) \
    {{name, PARAM_CHOICE, 0, 0, 0, value, NULL, choices}, section, when}
#define A_BOOLEAN(section, when, name, value) \
    {{name, PARAM_BOOLEAN, 0, 0, 0, value, NULL, NULL}, section, when}

/* "session", "events" and "filter" fit into struct session_spec. If a default is NULL, config_values.c computes the default from the machine or from other keys. */
static const struct key own[] = {
    A_TEXT(ALL, IN_SESSION, "session", 255, "blkin"),
    A_TEXT(ALL, IN_SESSION, "events", 1023, "zipkin:*,blkin:span,blkin:process"),
    A_TEXT(ALL, IN_SESSION, "filter", 1023, ""),
    A_BOOLEAN(ALL, IN_SESSION, "host", true),
    AN_INTEGER(ALL, IN_SESSION, "subbuf-bytes", 4 * KIB, GIB, 512 * KIB),
    AN_INTEGER(ALL, IN_SESSION, "subbuf-count", 2, 65536, 8),
    A_TEXT(ALL, AT_START, "runtime-dir", 80, NULL), /* FOLDER/SERVICE.sock fits into sun_path */
    A_TEXT(ALL, AT_START, "state-dir", 4000, NULL),
    A_TEXT(ALL, AT_START, "ring-socket", 107, RING_SOCKET),
    AN_INTEGER(ALL, AT_ONCE, "ring-bytes", 0, GIB, 0),
    AN_INTEGER(ALL, AT_ONCE, "ring-idle-ms", 0, DAY_MS, 60000),
    AN_INTEGER(ALL, AT_ONCE, "ring-users", 1, 4096, 64),
    AN_INTEGER(ALL, AT_ONCE, "rings-max-bytes", KIB, KIB * KIB * GIB, GIB),
    A_CHOICE(ALL, AT_ONCE, "log-level", levels, LEVEL_WARNING),
    AN_INTEGER(LIVE, IN_SESSION, "live-timer-us", 1000, HOUR_US, 200000),
    AN_INTEGER(LIVE, AT_ONCE, "retry-us", 1000, HOUR_US, 50000),
    A_TEXT(LIVE, AT_START, "relayd", 255, "own"),
    A_TEXT(LIVE, AT_START, "relayd-address", 255, "127.0.0.1"),
    AN_INTEGER(LIVE, AT_START, "relayd-control-port", 1, 65535, 5342),
    AN_INTEGER(LIVE, AT_START, "relayd-data-port", 1, 65535, 5343),
    AN_INTEGER(LIVE, AT_START, "relayd-live-port", 1, 65535, 5344),
    A_BOOLEAN(LIVE, AT_START, "expose-relayd", false),
    A_TEXT(LIVE, AT_ONCE, "follow", 1023, NULL),
    A_CHOICE(AGENT, AT_ONCE, "send", send_choices, 0),
    AN_INTEGER(AGENT, AT_ONCE, "ring-poll-ms", 1, 1000, 24),
    AN_INTEGER(AGENT, AT_ONCE, "seconds", 0, 86400, 0),
    AN_INTEGER(AGENT, AT_ONCE, "alarm-poll-ms", 10, 60000, 50),
    AN_INTEGER(AGENT, AT_ONCE, "linger-ms", 0, 60000, 1000),
    AN_INTEGER(AGENT, AT_ONCE, "fetch-interval-ms", 100, DAY_MS, 500),
    AN_INTEGER(AGENT, AT_ONCE, "fetch-traces", 1, 4096, 200),
    A_TEXT(AGENT, AT_START, "otlp-listen", 255, ""),
    A_TEXT(AGENT, AT_START, "otlp-socket", 107, ""),
    AN_INTEGER(AGENT, AT_START, "otlp-bytes", KIB * KIB, 1024 * GIB, 64 * KIB * KIB),
    AN_INTEGER(AGENT, AT_ONCE, "otlp-spans-per-s", 0, GIB, 0),
    AN_INTEGER(AGENT, AT_ONCE, "wanted-max-bytes", KIB * KIB, KIB * GIB, 256 * KIB * KIB),
    AN_INTEGER(AGENT, AT_ONCE, "answer-timeout-ms", 100, DAY_MS, 10000),
    A_CHOICE(AGENT, AT_ONCE, "keep-from", keep_from_choices, 0),
    AN_INTEGER(AGENT, AT_ONCE, "keep-minute-bytes", KIB, KIB * KIB * GIB, GIB),
    A_TEXT(AGENT, AT_START, "cluster", 1023, ""),
    A_TEXT(AGENT, AT_START, "cluster-user", 253, ""),
    A_TEXT(AGENT, AT_START, "cluster-password-file", 4000, ""),
    A_TEXT(AGENT, AT_START, "cluster-ca-file", 4000, ""),
    A_TEXT(AGENT, AT_START, "cluster-cert-file", 4000, ""),
    A_TEXT(AGENT, AT_START, "cluster-key-file", 4000, ""),
    AN_INTEGER(AGENT, AT_START, "cluster-wants-per-s", 1, 1000000, 100),
    AN_INTEGER(AGENT, AT_START, "cluster-forget-hours", 1, 24 * 3650, 168),
    A_BOOLEAN(AGENT, AT_START, "cluster-config", false),
    A_TEXT(AGENT, AT_ONCE, "cpu", 1023, ""), /* "cpu" to "cgroup" have the syntax in tools/sampler/sampler.h */
    A_TEXT(AGENT, AT_ONCE, "memory", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "pressure", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "run-queue", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "disk", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "network", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "tcp", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "process", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "cgroup", 1023, ""),
    A_TEXT(AGENT, AT_ONCE, "host-filters", 4000, ""),
    A_TEXT(AGENT, AT_ONCE, "host-root", 4000, ""),
    A_TEXT(WORK, AT_START, "input", 2000, ""),
    A_TEXT(WORK, AT_START, "deltas", 249, "blkin_deltas"),
    A_TEXT(WORK, AT_START, "group", 249, "blkin-work"),
    A_TEXT(WORK, AT_START, "instance", 200, ""),
    AN_INTEGER(WORK, AT_START, "wait-ms", 1, 3600000, 3000),
    AN_INTEGER(WORK, AT_START, "commit-ms", 10, 8000, 1000),
    AN_INTEGER(WORK, AT_START, "page-series", 1000, 1000000, 20000),
};
/* clang-format on */

#define KEYS_OWN ((int)(sizeof(own) / sizeof(own[0])))

const char *key_section(int section)
{
    return sections[section];
}

bool key_section_is_old(const char *name)
{
    return strcmp(name, "record") == 0 || strcmp(name, "host") == 0;
}

int key_find_section(const char *name)
{
    if (key_section_is_old(name))
        return AGENT;
    for (int i = 0; i < KEY_SECTIONS; i++) {
        if (strcmp(sections[i], name) == 0)
            return i;
    }
    return -1;
}

bool key_is_internal(const char *name)
{
    return strcmp(name, "statistics-file") == 0 || strcmp(name, "rules-report") == 0 ||
           strncmp(name, "from-", strlen("from-")) == 0 || strcmp(name, "sent-file") == 0;
}

/* Returns the i-th sink parameter that is a key. Makes the list once. */
static const struct param_rule *sink_rule(int i)
{
    static const struct param_rule *rules[KEYS_MAX];
    size_t count;
    const struct param_rule *table = params_table(&count);

    if (rules[0] == NULL) {
        for (size_t from = 0, to = 0; from < count && to < KEYS_MAX - KEYS_OWN - 1; from++) {
            if (!key_is_internal(table[from].name))
                rules[to++] = &table[from];
        }
    }
    return rules[i];
}

const struct param_rule *key_rule(int key)
{
    return key < KEYS_OWN ? &own[key].rule : sink_rule(key - KEYS_OWN);
}

int key_find(const char *name)
{
    for (int key = 0; key_rule(key); key++) {
        if (strcmp(key_rule(key)->name, name) == 0)
            return key;
    }
    return -1;
}

bool key_belongs_to_sink(int key)
{
    return key >= KEYS_OWN;
}

enum key_when key_when(int key)
{
    static const char *const start_only[] = {"prometheus-listen", "stats-file"};

    if (!key_belongs_to_sink(key))
        return (enum key_when)own[key].when;
    for (size_t i = 0; i < sizeof(start_only) / sizeof(start_only[0]); i++) {
        if (strcmp(key_rule(key)->name, start_only[i]) == 0)
            return KEY_AT_START;
    }
    return KEY_AT_ONCE;
}

int key_only_section(int key)
{
    return key_belongs_to_sink(key) ? ALL : own[key].section;
}

bool key_is_shared(int key)
{
    const bool is_agents = key_only_section(key) == AGENT;

    if (key_when(key) != KEY_AT_ONCE || (!is_agents && key_only_section(key) != ALL))
        return false;
    return key_rule(key)->type != PARAM_TEXT ||
           (is_agents && strcmp(key_rule(key)->name, "host-root") != 0);
}

/* ---- suggestions for unknown keys ------------------------------------------------------------ */

#define LIKE_MAX 64 /* bytes of a name that is compared */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns Levenshtein's distance. Treats _ as -. */
static unsigned distance(const char *given, const char *name)
{
    unsigned row[LIKE_MAX];
    const size_t width = strlen(name);

    if (width >= LIKE_MAX || strlen(given) >= LIKE_MAX)
        return LIKE_MAX;
    for (unsigned i = 0; i <= width; i++)
        row[i] = i;
    for (; *given; given++) {
        unsigned diagonal = row[0]++;

        for (size_t i = 0; i < width; i++) {
            const char c = *given == '_' ? '-' : *given;
            const unsigned replaced = diagonal + (c != name[i]);

            diagonal = row[i + 1];
            row[i + 1] = least(replaced, least(row[i], row[i + 1]) + 1);
        }
    }
    return row[width];
}

/* Returns whether the distance is less than *nearest, and at most 2 or a third of the name's
 * length. Then sets *nearest. */
static bool is_nearer(const char *given, const char *name, unsigned *nearest)
{
    const unsigned away = distance(given, name);

    if (away >= *nearest || (away > 2 && away * 3 > strlen(name)))
        return false;
    *nearest = away;
    return true;
}

const char *key_like(const char *name)
{
    const char *like = NULL;
    unsigned nearest = LIKE_MAX;

    for (int key = 0; key_rule(key); key++) {
        if (is_nearer(name, key_rule(key)->name, &nearest))
            like = key_rule(key)->name;
    }
    return like;
}

const char *key_gone(const char *name)
{
    static const char broker[] =
        "agents exchange requests through an MQTT broker: set \"cluster\", see packaging/mosquitto";
    static const char hosts[] =
        "let Prometheus read each host's page (prometheus-listen) and sum the metrics";
    static const char *const gone[][2] = {
        {"hub", broker},
        {"hub-token-file", "cluster-password-file"},
        {"hub-ca-file", "cluster-ca-file"},
        {"hub-cert-file", "cluster-cert-file"},
        {"hub-key-file", "cluster-key-file"},
        {"hub-traces-per-s", "cluster-wants-per-s, which each host has"},
        {"hub-listen", broker},
        {"hub-tokens-file", broker},
        {"expose-hub", broker},
        {"hub-kafka-file", broker},
        {"host-endpoint", hosts},
        {"host-send-ms", hosts},
        {"host-input", hosts},
        {"host-groups", hosts},
        {"host-listen", "the page of \"blkin agent\" has the host's metrics (prometheus-listen)"},
        {"otlp-metrics", "Prometheus reads the root's page (prometheus-listen)"},
        {"from",
         "to send every span without LTTng, set send = all in [agent] and run \"blkin agent\""},
        {"config-topic",
         "agents take shared keys from the broker: cluster-config = yes, in [agent]"},
    };

    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        if (strcmp(name, gone[i][0]) == 0)
            return gone[i][1];
    }
    return NULL;
}

const char *key_section_like(const char *name)
{
    const char *like = NULL;
    unsigned nearest = LIKE_MAX;

    for (int i = 1; i < KEY_SECTIONS; i++) {
        if (is_nearer(name, sections[i], &nearest))
            like = sections[i];
    }
    return like;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool counts_bytes(const struct param_rule *rule)
{
    const char *end = strrchr(rule->name, '-');

    return rule->type == PARAM_INTEGER && end && strcmp(end, "-bytes") == 0;
}

void key_expected(const struct param_rule *rule, char *text, size_t size)
{
    size_t length = 0;

    *text = '\0';
    switch (rule->type) {
    case PARAM_TEXT:
        (void)snprintf(text, size, "text");
        break;
    case PARAM_CLOSING:
        (void)snprintf(text, size, "texts, separated by commas");
        break;
    case PARAM_INTEGER:
        (void)snprintf(text, size, "%" PRId64 " to %" PRId64 "%s", rule->min, rule->max,
                       counts_bytes(rule) ? ", or with K, M, G or T" : "");
        break;
    case PARAM_BOOLEAN:
        (void)snprintf(text, size, "yes or no");
        break;
    case PARAM_CHOICE:
        for (int i = 0; rule->choices[i] && length < size; i++)
            length += (size_t)snprintf(text + length, size - length, "%s%s",
                                       i == 0 ? "" : (rule->choices[i + 1] ? ", " : " or "),
                                       rule->choices[i]);
        break;
    }
}

void key_default(const struct param_rule *rule, char *text, size_t size)
{
    switch (rule->type) {
    case PARAM_TEXT:
        (void)snprintf(text, size, "%s", rule->default_text ? rule->default_text : "");
        break;
    case PARAM_INTEGER:
        (void)snprintf(text, size, "%" PRId64, rule->default_integer);
        break;
    case PARAM_BOOLEAN:
        (void)snprintf(text, size, "%s", rule->default_integer ? "yes" : "no");
        break;
    case PARAM_CHOICE:
        (void)snprintf(text, size, "%s", rule->choices[rule->default_integer]);
        break;
    case PARAM_CLOSING:
        *text = '\0';
        break;
    }
}

/* Reads an integer. Bytes may have the suffix K, M, G or T, powers of 1024. */
static bool read_integer(const struct param_rule *rule, const char *text, int64_t *value)
{
    static const char units[] = "KMGT";
    const char *unit;
    char *end;

    if (*text != '-' && *text != '+' && (*text < '0' || *text > '9'))
        return false;
    errno = 0;
    /* an overflow gives INT64_MAX, which is outside of every range */
    *value = strtoll(text, &end, 10);
    if (end == text)
        return false;
    if (*end && counts_bytes(rule) && (unit = strchr(units, *end)) != NULL) {
        for (int64_t i = unit - units; i >= 0; i--)
            *value = *value > INT64_MAX / KIB ? INT64_MAX : *value < 0 ? *value : *value * KIB;
        end++;
    }
    return *end == '\0';
}

static bool read_boolean(const char *text, bool *value)
{
    static const char *const names[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *value = strcasecmp(text, names[i][1]) == 0;
        if (*value || strcasecmp(text, names[i][0]) == 0)
            return true;
    }
    return false;
}

/* Checks the URL as the sink does. The sink's message does not name the file and the line of the
 * setting; the message of this check does. */
static bool check_endpoint(const char *text, struct error *error)
{
    struct kafka_url kafka;
    struct http_url url;

    if (strncmp(text, "file:", strlen("file:")) == 0)
        return true;
    if (is_kafka_url(text))
        return kafka_url_parse(&kafka, "endpoint", text, error);
    if (!http_url_parse(&url, protocol_of(FORMAT_AUTO, text)->path, text, error))
        return false;
    http_url_free(&url);
    return true;
}

static keys_check_fn *sampler_check = NULL;

void keys_set_sampler_check(keys_check_fn *check)
{
    sampler_check = check;
}

static bool is_right_text(const struct param_rule *rule, const char *text, struct error *error)
{
    if (*text == '\0' && rule->default_text && *rule->default_text &&
        strcmp(rule->name, "deltas") != 0) { /* deltas = "": no topic of counts */
        return error_set(error, "parameter \"%s\": expected a text, got nothing", rule->name);
    }
    /* the service sends the values to its children and to `blkin status` in JSON */
    if (!utf8_is_valid(text_of(text)))
        return error_set(error, "parameter \"%s\": expected UTF-8", rule->name);
    return (strcmp(rule->name, "endpoint") != 0 || check_endpoint(text, error)) &&
           (!sampler_check || sampler_check(rule->name, text, error));
}

bool key_read(const struct param_rule *rule, const char *text, struct param_value *value,
              struct error *error)
{
    char expected[128];
    bool boolean;

    *value = (struct param_value){.text = NULL};
    key_expected(rule, expected, sizeof(expected));
    error_set(error, "parameter \"%s\": expected %s, got \"%.64s\"", rule->name, expected, text);
    if (rule->type == PARAM_INTEGER) {
        if (!read_integer(rule, text, &value->integer))
            return false;
        /* subbuf-bytes and subbuf-count: LTTng's own error does not name the power of 2 */
        if (strncmp(rule->name, "subbuf-", strlen("subbuf-")) == 0 && value->integer > 0 &&
            (value->integer & (value->integer - 1)) != 0)
            return error_set(error, "parameter \"%s\": expected a power of 2, got %" PRId64,
                             rule->name, value->integer);
    } else if (rule->type == PARAM_BOOLEAN) {
        if (!read_boolean(text, &boolean))
            return false;
        value->integer = boolean;
    } else if (!is_right_text(rule, text, error)) {
        return false;
    } else {
        value->text = text;
    }
    return param_check(rule, value, error);
}
