/*
 * The URL of a topic, the configuration of librdkafka, and partitions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kafka_conf.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- the URL --------------------------------------------------------------------------------- */

static const char scheme[] = "kafka://";

bool is_kafka_url(const char *text)
{
    return text && strncasecmp(text, scheme, sizeof(scheme) - 1) == 0;
}

/* Returns false if the text is empty or too long, or has characters other than letters, digits and
 * `others`. */
static bool kafka_url_copy(char *to, size_t size, const char *from, size_t length,
                           const char *others)
{
    if (length == 0 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)from[i]) && !(from[i] && strchr(others, from[i])))
            return false;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

void kafka_url_set_topic(struct kafka_url *url, const char *topic)
{
    (void)snprintf(url->topic, sizeof(url->topic), "%s", topic);
    (void)snprintf(url->shown, sizeof(url->shown), "kafka://%s/%s", url->brokers, url->topic);
}

/* The message does not show the URL: a wrong URL may contain a password. */
bool kafka_url_parse(struct kafka_url *url, const char *name, const char *text, struct error *error)
{
    const char *brokers = text + (is_kafka_url(text) ? sizeof(scheme) - 1 : 0);
    const size_t brokers_length = strcspn(brokers, "/?#");
    const char *topic = brokers + brokers_length + (brokers[brokers_length] == '/');
    const size_t topic_length = strcspn(topic, "?#");
    const char *options = topic + topic_length;
    char name_of_topic[sizeof(url->topic)];

    if (!kafka_url_copy(url->brokers, sizeof(url->brokers), brokers, brokers_length, ".-_:,[]") ||
        !kafka_url_copy(name_of_topic, sizeof(name_of_topic), topic, topic_length, ".-_") ||
        *options == '#' || strlen(options) > sizeof(url->options))
        return error_set(
            error,
            "%s: expected kafka://BROKER[:PORT][,BROKER[:PORT]]/TOPIC[?OPTION=VALUE&...]; "
            "users and passwords are in " KAFKA_FILE,
            name);
    (void)snprintf(url->options, sizeof(url->options), "%s", *options ? options + 1 : "");
    url->name = name;
    kafka_url_set_topic(url, name_of_topic);
    return true;
}

#ifdef HAS_KAFKA

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/encode/json.h"

#include <errno.h>
#include <sys/stat.h>

static bool conf_set(rd_kafka_conf_t *conf, const char *key, const char *value, const char *name,
                     struct error *error)
{
    char cause[256];

    if (rd_kafka_conf_set(conf, key, value, cause, sizeof(cause)) == RD_KAFKA_CONF_OK)
        return true;
    return error_set(error, "%s: %s: %s", name, key, cause);
}

/* ---- settings of the user -------------------------------------------------------------------- */

static bool conf_is_among(const char *key, const char *const keys[])
{
    while (keys && *keys && strcmp(key, *keys) != 0)
        keys++;
    return keys && *keys;
}

/* Splits "key=value". Returns the value, or NULL. */
static char *conf_split(char *line)
{
    char *value = strchr(line, '=');

    if (!value || value == line)
        return NULL;
    *value = '\0';
    return value + 1;
}

static bool conf_set_option(rd_kafka_conf_t *conf, const struct kafka_setup *setup, const char *key,
                            const char *value, const char *name, struct error *error)
{
    if (conf_is_among(key, setup->reserved))
        return error_set(error, "%s: %s cannot be set: the guarantees of the delivery depend on it",
                         name, key);
    return conf_set(conf, key, value, name, error);
}

static bool conf_set_url(rd_kafka_conf_t *conf, const struct kafka_setup *setup,
                         struct error *error)
{
    char options[sizeof(setup->url->options)], *value, *rest = NULL;

    if (!conf_set(conf, "bootstrap.servers", setup->url->brokers, setup->url->name, error))
        return false;
    memcpy(options, setup->url->options, sizeof(options));
    for (char *key = strtok_r(options, "&", &rest); key; key = strtok_r(NULL, "&", &rest)) {
        value = conf_split(key);
        if (!value)
            return error_set(error, "%s: expected OPTION=VALUE after the '?'", setup->url->name);
        if (strstr(key, "password") || strstr(key, "secret") || strstr(key, ".pem") ||
            strcmp(key, "sasl.oauthbearer.config") == 0)
            return error_set(error, "%s: %s: all users of this machine can see it: set it in %s",
                             setup->url->name, key, KAFKA_FILE);
        if (!conf_set_option(conf, setup, key, value, setup->url->name, error))
            return false;
    }
    return true;
}

static bool conf_set_line(rd_kafka_conf_t *conf, const struct kafka_setup *setup, char *line,
                          struct error *error)
{
    char *value;

    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0] || line[0] == '#')
        return true;
    value = conf_split(line);
    if (value)
        return conf_set_option(conf, setup, line, value, KAFKA_FILE, error);
    return error_set(error, "%s \"%s\": expected lines of key=value", KAFKA_FILE, setup->file);
}

static bool conf_set_file(rd_kafka_conf_t *conf, const struct kafka_setup *setup,
                          struct error *error)
{
    const char *const path = setup->file, *const name = KAFKA_FILE;
    FILE *file = path && *path ? fopen(path, "re") : NULL;
    bool is_valid = true;
    struct stat status;
    char line[4096];

    if (!path || !*path)
        return true;
    if (!file)
        return error_set(error, "%s \"%s\": cannot read the file: %s", name, path, strerror(errno));
    if (fstat(fileno(file), &status) != 0 || status.st_mode & 077) {
        error_set(error, "%s \"%s\": other users may read or write it: chmod 600 it", name, path);
        is_valid = false;
    }
    while (is_valid && fgets(line, sizeof(line), file))
        is_valid = conf_set_line(conf, setup, line, error);
    explicit_bzero(line, sizeof(line));
    (void)fclose(file);
    return is_valid;
}

/* ---- the client ------------------------------------------------------------------------------ */

static bool conf_set_all(rd_kafka_conf_t *conf, const struct kafka_setup *setup,
                         struct error *error)
{
    for (size_t i = 0; setup->settings[i][0]; i++) {
        if (!conf_set(conf, setup->settings[i][0], setup->settings[i][1], setup->url->name, error))
            return false;
    }
    return (!setup->is_log_polled ||
            conf_set(conf, "log.queue", "true", setup->url->name, error)) &&
           conf_set_url(conf, setup, error) && conf_set_file(conf, setup, error);
}

rd_kafka_t *kafka_open(rd_kafka_type_t type, const struct kafka_setup *setup, struct error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *handle;
    char cause[256];

    if (!conf_set_all(conf, setup, error)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_opaque(conf, setup->context);
    if (setup->error)
        rd_kafka_conf_set_error_cb(conf, setup->error);
    if (setup->delivered)
        rd_kafka_conf_set_dr_msg_cb(conf, setup->delivered);
    if (setup->rebalance)
        rd_kafka_conf_set_rebalance_cb(conf, setup->rebalance);
    if (setup->log)
        rd_kafka_conf_set_log_cb(conf, setup->log);
    handle = rd_kafka_new(type, conf, cause, sizeof(cause));
    if (!handle) {
        rd_kafka_conf_destroy(conf);
        error_set(error, "%s, or %s: %s", setup->url->name, KAFKA_FILE, cause);
    } else if (setup->is_log_polled) {
        (void)rd_kafka_set_log_queue(handle, NULL);
    }
    return handle;
}

uint32_t kafka_partition(uint64_t high, uint64_t low, uint32_t partitions)
{
    char key[32];

    (void)json_put_hex(json_put_hex(key, high), low);
    /* a hash of the key alone: the topic is not used */
    return (uint32_t)rd_kafka_msg_partitioner_fnv1a(NULL, key, sizeof(key), (int32_t)partitions,
                                                    NULL, NULL);
}

/* ---- the spans of a run in the order of their traces' partitions ----------------------------- */

#define KAFKA_MESSAGE_SPANS 2000

/* The partitions of `count` spans, and then the order of the spans. */
struct trace_partitions {
    uint32_t *partition;
    uint32_t *group; /* the unit with the head of the span's group */
    uint32_t *order;
    uint32_t *next; /* for each partition: the position of its next span */
};

static bool partitions_prepare(struct trace_partitions *sorted, struct arranged *arranged,
                               uint32_t count, uint32_t partitions)
{
    const size_t needed = 3 * (size_t)count + partitions;

    if (!ARRAY_FITS(arranged->slots, arranged->slots_room, needed - 1))
        return false;
    sorted->partition = arranged->slots;
    sorted->group = sorted->partition + count;
    sorted->order = sorted->group + count;
    sorted->next = sorted->order + count;
    memset(sorted->next, 0, partitions * sizeof(*sorted->next));
    return true;
}

static size_t arrange_head_length(const struct encoder *encoder, const struct body *body,
                                  uint32_t unit)
{
    return encoder->head_length ? encoder->head_length(body->buffer.data + body->starts[unit]) : 0;
}

/* Finds partitions and groups, and sorts by partition with a stable sort. */
static void arrange_sort(struct trace_partitions *sorted, const struct encoder *encoder,
                         struct body_run run, uint32_t partitions)
{
    uint64_t id[2], last[2] = {0, 0}; /* spans of one trace often follow one another */
    uint32_t partition = partitions ? kafka_partition(0, 0, partitions) : 0;
    uint32_t group = run.first, position = 0;

    while (encoder->head_length && !arrange_head_length(encoder, run.body, group))
        group--;
    for (uint32_t i = run.first; i < run.end; i++) {
        encoder->trace_of(body_unit(run.body, encoder, i), id);
        if (partitions && (id[0] != last[0] || id[1] != last[1])) {
            memcpy(last, id, sizeof(last));
            partition = kafka_partition(id[0], id[1], partitions);
        }
        if (arrange_head_length(encoder, run.body, i))
            group = i;
        sorted->partition[i - run.first] = partition;
        sorted->group[i - run.first] = group;
        sorted->next[partition]++;
    }
    for (uint32_t i = 0; i < (partitions ? partitions : 1); i++) {
        const uint32_t spans = sorted->next[i];

        sorted->next[i] = position;
        position += spans;
    }
    for (uint32_t i = run.first; i < run.end; i++)
        sorted->order[sorted->next[sorted->partition[i - run.first]]++] = i;
}

static bool arrange_begin_run(struct arranged *arranged, uint32_t partition, uint32_t partitions)
{
    if (!ARRAY_FITS(arranged->runs, arranged->runs_room, arranged->count))
        return false;
    arranged->runs[arranged->count++] = (struct body_run){.body = &arranged->body,
                                                          .first = arranged->body.count,
                                                          .is_arranged = true,
                                                          .partition = partition,
                                                          .partitions = partitions};
    return true;
}

/* Returns true if the last run has room for a span with `length` bytes. */
static bool arrange_has_room(const struct arranged *arranged, uint32_t partition, size_t length,
                             size_t bytes)
{
    const struct body *body = &arranged->body;
    const struct body_run *last = arranged->count ? &arranged->runs[arranged->count - 1] : NULL;

    return last && last->partition == partition &&
           (!last->partitions ||
            (body->count - last->first < KAFKA_MESSAGE_SPANS &&
             body->buffer.length + length - body->starts[last->first] <= bytes));
}

bool kafka_arrange_run(uint32_t partitions, const struct encoder *encoder, struct body_run run,
                       size_t bytes, struct arranged *arranged)
{
    struct body *const body = &arranged->body;
    struct trace_partitions sorted;
    uint32_t group = run.end; /* of the last span in the same arranged run; run.end: none */

    body_reset(body);
    arranged->count = 0;
    if (!partitions_prepare(&sorted, arranged, body_run_length(run), partitions + 1))
        return false;
    arrange_sort(&sorted, encoder, run, partitions);
    for (uint32_t i = 0; i < body_run_length(run); i++) {
        const uint32_t from = sorted.order[i];
        const uint32_t partition = sorted.partition[from - run.first];
        const uint32_t span_group = sorted.group[from - run.first];
        const struct text unit = body_unit(run.body, encoder, from);
        struct text head = {run.body->buffer.data + run.body->starts[span_group], 0};

        if (span_group != from)
            head.length = arrange_head_length(encoder, run.body, span_group);
        if (!arrange_has_room(arranged, partition, head.length + unit.length, bytes)) {
            if (!arrange_begin_run(arranged, partition, partitions))
                return false;
            group = run.end;
        }
        if (span_group == group)
            head.length = 0;
        if (!body_append(body, encoder, head, unit))
            return false;
        group = span_group;
        arranged->runs[arranged->count - 1].end = body->count;
    }
    return true;
}

/* ---- error messages -------------------------------------------------------------------------- */

/* librdkafka has one code for all TLS errors. OpenSSL's message shows the cause. */
static const char *conf_tls_advice(const char *reason)
{
    if (strstr(reason, "verify failed"))
        return "; if this is the right broker, set ssl.ca.location to the CA of its certificate "
               "in ";
    return "; for the protocol of the port, and a client certificate if the broker asks for one, "
           "set security.protocol and ssl.* in ";
}

static const char *conf_advice(rd_kafka_resp_err_t code, const char *reason, bool *is_of_file)
{
    *is_of_file = false;
    switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return ": make the topic (kafka-topics.sh --create)";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        return ": allow this user to use the topic (kafka-acls.sh --add)";
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        *is_of_file = true;
        return ": see ";
    default: /* some TLS errors have another code */
        *is_of_file = code == RD_KAFKA_RESP_ERR__SSL || strstr(reason, "SSL_HANDSHAKE");
        return *is_of_file ? conf_tls_advice(reason) : "";
    }
}

void kafka_describe(struct error *error, const char *where, rd_kafka_resp_err_t code,
                    const char *reason)
{
    bool is_of_file;
    const char *advice = conf_advice(code, reason, &is_of_file);

    error_set(error, "%.300s: %.300s%s%s", where, reason, advice, is_of_file ? KAFKA_FILE : "");
}

#endif
