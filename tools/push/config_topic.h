/*
 * The part of a service's configuration that comes from a topic of Kafka (key config-topic), where
 * `blkin config push` writes it. The lines are checked, applied, and kept in the state folder, for
 * a start without brokers.
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
    /* Applies these lines; NULL: only those of the file. Returns false with error set: then the
     * lines before stay in effect. */
    bool (*apply)(void *context, const struct config_pushed *lines, struct error *error);
    void *context;
};

/* Does not wait for brokers: the lines in the state folder hold until the topic is read. *topic is
 * NULL if the key is not set. Returns false with error set. */
bool config_topic_open(const struct config *config, const struct config_topic_service *service,
                       struct loop *loop, struct config_topic **topic, struct error *error);

/* All functions below: NULL is allowed. */
void config_topic_close(struct config_topic *topic);

/* Is this the topic that the configuration names, and has it no problem? */
bool config_topic_is_of(const struct config_topic *topic, const struct config *config);

/* Sets lines to those that hold; returns false if only the file's lines hold. */
bool config_topic_lines(const struct config_topic *topic, struct config_pushed *lines);

/* Which lines hold, since when, and the state of the topic. NULL: the key is not set, or out of
 * memory. */
json_t *config_topic_json(const struct config_topic *topic);

#endif
