/*
 * The configuration of librdkafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kafka_conf.h"

#ifdef HAS_KAFKA

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool set(rd_kafka_conf_t *conf, const char *key, const char *value, const char *name,
                struct error *error)
{
    char cause[256];

    if (rd_kafka_conf_set(conf, key, value, cause, sizeof(cause)) == RD_KAFKA_CONF_OK)
        return true;
    error_set(error, "%s: %s: %s", name, key, cause);
    return false;
}

/* ---- what a user gives ----------------------------------------------------------------------- */

static bool is_among(const char *key, const char *const keys[])
{
    while (keys && *keys && strcmp(key, *keys) != 0)
        keys++;
    return keys && *keys;
}

static bool is_secret(const char *key)
{
    return strstr(key, "password") || strstr(key, "secret") || strstr(key, ".pem") ||
           strcmp(key, "sasl.oauthbearer.config") == 0;
}

/* Takes "key=value" apart. Returns the value, or NULL. */
static char *split(char *line)
{
    char *value = strchr(line, '=');

    if (!value || value == line)
        return NULL;
    *value = '\0';
    return value + 1;
}

static bool set_free(rd_kafka_conf_t *conf, const struct kafka_setup *setup, const char *key,
                     const char *value, const char *name, struct error *error)
{
    if (is_among(key, setup->reserved)) {
        error_set(error, "%s: %s: what is promised about delivery depends on it, so it is not free",
                  name, key);
        return false;
    }
    return set(conf, key, value, name, error);
}

static bool set_url(rd_kafka_conf_t *conf, const struct kafka_setup *setup, struct error *error)
{
    char options[sizeof(setup->url->options)], *value, *rest = NULL;

    if (!set(conf, "bootstrap.servers", setup->url->brokers, setup->name, error))
        return false;
    memcpy(options, setup->url->options, sizeof(options));
    for (char *key = strtok_r(options, "&", &rest); key; key = strtok_r(NULL, "&", &rest)) {
        value = split(key);
        if (!value) {
            error_set(error, "%s: expected OPTION=VALUE after the '?'", setup->name);
            return false;
        }
        if (is_secret(key)) {
            error_set(error, "%s: %s: all users of this machine can see it: give it in %s",
                      setup->name, key, setup->file_name);
            return false;
        }
        if (!set_free(conf, setup, key, value, setup->name, error))
            return false;
    }
    return true;
}

static bool set_line(rd_kafka_conf_t *conf, const struct kafka_setup *setup, char *line,
                     struct error *error)
{
    char *value;

    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0] || line[0] == '#')
        return true;
    value = split(line);
    if (value)
        return set_free(conf, setup, line, value, setup->file_name, error);
    error_set(error, "%s \"%s\": expected lines of key=value", setup->file_name, setup->file);
    return false;
}

static bool set_file(rd_kafka_conf_t *conf, const struct kafka_setup *setup, struct error *error)
{
    const char *const path = setup->file, *const name = setup->file_name;
    FILE *file = path && *path ? fopen(path, "re") : NULL;
    bool is_right = true;
    struct stat status;
    char line[4096];

    if (!path || !*path)
        return true;
    if (!file) {
        error_set(error, "%s \"%s\": cannot read it: %s", name, path, strerror(errno));
        return false;
    }
    if (fstat(fileno(file), &status) != 0 || status.st_mode & 077) {
        error_set(error, "%s \"%s\": others than its owner may read or write it: chmod 600 it",
                  name, path);
        is_right = false;
    }
    while (is_right && fgets(line, sizeof(line), file))
        is_right = set_line(conf, setup, line, error);
    explicit_bzero(line, sizeof(line));
    (void)fclose(file);
    return is_right;
}

/* ---- the client ------------------------------------------------------------------------------ */

static bool set_all(rd_kafka_conf_t *conf, const struct kafka_setup *setup, struct error *error)
{
    for (size_t i = 0; i < setup->count; i++) {
        if (!set(conf, setup->settings[i][0], setup->settings[i][1], setup->name, error))
            return false;
    }
    return (!setup->is_log_polled || set(conf, "log.queue", "true", setup->name, error)) &&
           set_url(conf, setup, error) && set_file(conf, setup, error);
}

rd_kafka_t *kafka_open(rd_kafka_type_t type, const struct kafka_setup *setup, struct error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *handle;
    char cause[256];

    if (!set_all(conf, setup, error)) {
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
        error_set(error, "%s, or %s: %s", setup->name, setup->file_name, cause);
    } else if (setup->is_log_polled) {
        (void)rd_kafka_set_log_queue(handle, NULL);
    }
    return handle;
}

/* ---- what went wrong ------------------------------------------------------------------------- */

/* Of TLS there is one code for all troubles: OpenSSL's words tell which. */
static const char *tls_advice(const char *reason)
{
    if (strstr(reason, "verify failed"))
        return "; if it is the right broker, name the CA of its certificate: ssl.ca.location in ";
    return "; what the port speaks, and our certificate if it asks for one: security.protocol and "
           "ssl.* in ";
}

static const char *advice_of(rd_kafka_resp_err_t code, const char *reason, bool *is_of_file)
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
    default: /* TLS has a code of its own, which not all of its troubles have */
        *is_of_file = code == RD_KAFKA_RESP_ERR__SSL || strstr(reason, "SSL_HANDSHAKE");
        return *is_of_file ? tls_advice(reason) : "";
    }
}

void kafka_describe(struct error *error, const char *where, rd_kafka_resp_err_t code,
                    const char *reason, const char *file_name)
{
    bool is_of_file;
    const char *advice = advice_of(code, reason, &is_of_file);

    error_set(error, "%.300s: %.300s%s%s", where, reason, advice, is_of_file ? file_name : "");
}

#else

typedef int this_build_is_without_librdkafka;

#endif
