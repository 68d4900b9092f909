/*
 * The settings of a topic or a broker.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kafka_settings.h"

#ifndef HAS_KAFKA

typedef int this_build_is_without_librdkafka;

#else

#define ASK_MS 1500

bool kafka_settings(rd_kafka_t *client, rd_kafka_ResourceType_t type, const char *name,
                    kafka_setting_fn *take, void *context)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(type, name);
    const rd_kafka_ConfigResource_t **told;
    rd_kafka_event_t *event;
    size_t count = 0;

    rd_kafka_DescribeConfigs(client, &resource, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, ASK_MS);
    if (event && !rd_kafka_event_error(event)) {
        told = rd_kafka_DescribeConfigs_result_resources(
            rd_kafka_event_DescribeConfigs_result(event), &count);
        if (count == 1 && !rd_kafka_ConfigResource_error(told[0])) {
            const rd_kafka_ConfigEntry_t **entries =
                rd_kafka_ConfigResource_configs(told[0], &count);

            for (size_t i = 0; i < count; i++) {
                const char *value = rd_kafka_ConfigEntry_value(entries[i]);

                take(context, rd_kafka_ConfigEntry_name(entries[i]), value ? value : "");
            }
        } else {
            count = 0;
        }
    }
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_queue_destroy(queue);
    return count > 0;
}

#endif
