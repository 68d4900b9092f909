/*
 * The part of a service's configuration that comes from a topic of Kafka (key config-topic), as
 * `blkin config push` writes it: what is read is checked, given to the service, and kept in the
 * state folder for a start without brokers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_CONFIG_TOPIC_H
#define BLKIN_TOOLS_SERVICE_CONFIG_TOPIC_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>

struct config_topic;

struct config_topic_service {
    const char *name;
    /* Other lines are to hold; NULL: none do but the file's. Returns false with error set: those
     * before do. */
    bool (*apply)(void *context, const struct config_pushed *lines, struct error *error);
    void *context;
};

/* Waits for nobody: what the state folder has holds until the topic was read. *topic: NULL if the
 * key is not set. Returns false with error set. */
bool config_topic_open(const struct config *config, const struct config_topic_service *service,
                       struct loop *loop, struct config_topic **topic, struct error *error);

/* All below: NULL is allowed. */
void config_topic_close(struct config_topic *topic);

/* Is it the one that the configuration names, and well? */
bool config_topic_is_of(const struct config_topic *topic, const struct config *config);

/* What is to hold; returns false if that are the file's lines alone. */
bool config_topic_lines(const struct config_topic *topic, struct config_pushed *lines);

/* What holds, since when, and how it is. NULL: the key is not set, or out of memory. */
json_t *config_topic_json(const struct config_topic *topic);

#endif
