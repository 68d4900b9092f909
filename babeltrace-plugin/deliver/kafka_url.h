/*
 * kafka://BROKER[:PORT][,BROKER[:PORT]...]/TOPIC[?OPTION=VALUE&...]: the options are librdkafka's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_KAFKA_URL_H
#define BLKIN_OUTPUT_KAFKA_URL_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

struct kafka_url {
    char brokers[768];
    char topic[250];
    char options[1024]; /* what is after the '?' */
};

/* NULL is none. */
bool is_kafka_url(const char *text);

/*
 * name: the parameter or key that holds the URL, and file that of the file with secrets, as a
 * message calls them. Returns false with error set.
 */
bool kafka_url_parse(struct kafka_url *url, const char *name, const char *file, const char *text,
                     struct error *error);

#endif
