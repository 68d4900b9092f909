/*
 * Reads the keys of the cluster.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cluster_parts.h"

#include "tools/base/say.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOUR_MS INT64_C(3600000)

/* ---- the broker's address -------------------------------------------------------------------- */

static bool settings_part(CURLU *url, CURLUPart part, char **text)
{
    return curl_url_get(url, part, text, 0) == CURLUE_OK;
}

/* Splits mqtt[s]://HOST[:PORT]. Returns false if the URL has other parts, such as a user. */
static bool settings_split(CURLU *url, const char *text, struct broker_setup *setup)
{
    static const CURLUPart others[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *other = NULL;
    bool is_right;

    is_right = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
               settings_part(url, CURLUPART_SCHEME, &scheme) &&
               settings_part(url, CURLUPART_HOST, &host) &&
               (!settings_part(url, CURLUPART_PATH, &path) || strlen(path) <= 1);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && is_right; i++)
        is_right = !settings_part(url, others[i], &other);
    if (is_right) {
        const size_t length = strlen(host), bracket = *host == '[';

        setup->is_tls = strcmp(scheme, "mqtts") == 0;
        setup->port = settings_part(url, CURLUPART_PORT, &port) ? atoi(port)
                      : setup->is_tls                           ? 8883
                                                                : 1883;
        (void)snprintf(setup->host, sizeof(setup->host), "%.*s", (int)(length - 2 * bracket),
                       host + bracket);
        is_right = (setup->is_tls || strcmp(scheme, "mqtt") == 0) && length < sizeof(setup->host);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(other);
    return is_right;
}

/* The message of an error omits the text, because a malformed URL may contain a password. */
static bool settings_take_url(struct cluster *cluster, const char *text, struct broker_setup *setup,
                              struct error *error)
{
    CURLU *url = curl_url();
    const bool is_right = url && settings_split(url, text, setup);

    curl_url_cleanup(url);
    if (!is_right)
        return error_set(error,
                         "cluster: expected mqtt://BROKER[:PORT] or mqtts://BROKER[:PORT], without "
                         "a user, a path or a query: cluster-user has the user");
    (void)snprintf(cluster->url, sizeof(cluster->url), "%s://%s:%d",
                   setup->is_tls ? "mqtts" : "mqtt", setup->host, setup->port);
    return true;
}

/* ---- the other keys -------------------------------------------------------------------------- */

static const char *settings_text(const struct config *config, const char *key)
{
    const char *text = config_text(config, key);

    return text && *text ? text : NULL;
}

/* Copies the paths, as a reload frees the configuration. */
static bool settings_take_tls(struct cluster *cluster, const struct config *config,
                              struct broker_setup *setup, struct error *error)
{
    static const char *const keys[] = {"cluster-ca-file", "cluster-cert-file", "cluster-key-file"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *path = settings_text(config, keys[i]);

        if (!path)
            continue;
        if (!setup->is_tls)
            return error_set(error, "%s: it needs cluster = mqtts://BROKER", keys[i]);
        if (access(path, R_OK) != 0)
            return error_set(error, "%s \"%s\": cannot read the file: %s", keys[i], path,
                             strerror(errno));
        cluster->tls_files[i] = strdup(path);
        if (!cluster->tls_files[i])
            return error_set(error, "out of memory");
    }
    setup->ca_file = cluster->tls_files[0];
    setup->cert_file = cluster->tls_files[1];
    setup->key_file = cluster->tls_files[2];
    return !setup->cert_file == !setup->key_file ||
           error_set(error, "cluster-cert-file and cluster-key-file: expected both, or none");
}

static bool settings_is_local(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

bool cluster_set_up(struct cluster *cluster, const struct config *config,
                    void (*event)(void *context, const struct broker_event *event),
                    struct error *error)
{
    const char *password_file = settings_text(config, "cluster-password-file");
    const char *user = settings_text(config, "cluster-user");
    struct broker_setup setup = {
        .client = cluster->host,
        .topics = {"blkin/+/state", "blkin/+/want", cluster->found_topic},
        .will_topic = cluster->state_topic,
        .will = "{\"state\":\"gone\"}",
        .event = event,
        .context = cluster,
    };

    if (!settings_take_url(cluster, config_text(config, "cluster"), &setup, error) ||
        !settings_take_tls(cluster, config, &setup, error) ||
        (password_file &&
         !secret_read_file("cluster-password-file", password_file, true, cluster->password, error)))
        return false;
    (void)snprintf(cluster->user, sizeof(cluster->user), "%s", user ? user : cluster->host);
    if (password_file) {
        setup.user = cluster->user;
        setup.password = cluster->password;
        if (!setup.is_tls && !settings_is_local(setup.host))
            say(BK4067, "the password goes over mqtt://, where everyone on the network path can "
                        "read it: use mqtts://");
    }
    cluster->wants_per_s = config_integer(config, "cluster-wants-per-s");
    cluster->forget_ms = config_integer(config, "cluster-forget-hours") * HOUR_MS;
    setup.will_expiry_s = (uint32_t)(cluster->forget_ms / 1000);
    (void)snprintf(cluster->found_topic, sizeof(cluster->found_topic), "blkin/+/found/%s",
                   cluster->host);
    if (config_boolean(config, "cluster-config"))
        setup.topics[3] = CONFIG_TOPIC;
    cluster->broker = broker_open(cluster->loop, &setup, error);
    return cluster->broker != NULL;
}
