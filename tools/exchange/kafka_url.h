/*
 * kafka://BROKER[:PORT][,BROKER[:PORT]]/TOPIC
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXCHANGE_KAFKA_URL_H
#define BLKIN_TOOLS_EXCHANGE_KAFKA_URL_H

#include "error.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct kafka_url {
    char brokers[768];
    char topic[250];
};

/* Returns false with error set. */
static inline bool kafka_url_parse(struct kafka_url *url, const char *text, struct error *error)
{
    const char *brokers = text + strlen("kafka://");
    const size_t length = strcspn(brokers, "/");
    const char *topic = brokers + length + (brokers[length] == '/');
    bool is_right =
        length > 0 && length < sizeof(url->brokers) && *topic && strlen(topic) < sizeof(url->topic);

    for (const char *c = brokers; is_right && c < brokers + length; c++)
        is_right = isalnum((unsigned char)*c) || strchr(".-_:,[]", *c);
    for (const char *c = topic; is_right && *c; c++)
        is_right = isalnum((unsigned char)*c) || strchr(".-_", *c);
    if (!is_right) {
        error_set(error, "hub: expected kafka://BROKER[:PORT][,BROKER[:PORT]]/TOPIC; users and "
                         "passwords are in hub-kafka-file");
        return false;
    }
    memcpy(url->brokers, brokers, length);
    url->brokers[length] = '\0';
    (void)snprintf(url->topic, sizeof(url->topic), "%s", topic);
    return true;
}

#endif
