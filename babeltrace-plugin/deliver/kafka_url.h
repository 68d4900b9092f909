/*
 * kafka://BROKER[:PORT][,BROKER[:PORT]...]/TOPIC[?OPTION=VALUE&...]: the options are librdkafka's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_KAFKA_URL_H
#define BLKIN_OUTPUT_KAFKA_URL_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

/* The parameter or key that names a file of secrets for librdkafka, see kafka_conf.h. */
#define KAFKA_FILE "kafka-file"

struct kafka_url {
    const char *name; /* of the parameter or key that holds the URL, as messages call it; static */
    char brokers[768];
    char topic[250];
    char options[1024]; /* what is after the '?' */
    char shown[1100];   /* for messages: without the options */
};

/* NULL is none. */
bool is_kafka_url(const char *text);

/* Returns false with error set. */
bool kafka_url_parse(struct kafka_url *url, const char *name, const char *text,
                     struct error *error);

/* The same brokers, another topic. */
void kafka_url_set_topic(struct kafka_url *url, const char *topic);

#endif
