/*
 * The settings of a topic or a broker, as a broker tells them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_KAFKA_SETTINGS_H
#define BLKIN_TOOLS_SERVICE_KAFKA_SETTINGS_H

#ifdef HAS_KAFKA

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

typedef void kafka_setting_fn(void *context, const char *key, const char *value);

/* Calls for each setting. Returns false if they are not told within 1.5 s. */
bool kafka_settings(rd_kafka_t *client, rd_kafka_ResourceType_t type, const char *name,
                    kafka_setting_fn *take, void *context);

#endif

#endif
