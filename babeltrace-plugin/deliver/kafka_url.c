/*
 * The URL of a topic of Kafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kafka_url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char scheme[] = "kafka://";

bool is_kafka_url(const char *text)
{
    return text && strncasecmp(text, scheme, sizeof(scheme) - 1) == 0;
}

/* Returns false if the text is empty or too long, or has other characters than letters, digits and
 * these. */
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

/* The message does not show the URL, as a wrong one may have a password in it. */
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
