/*
 * The topic of hosts' metrics: each message stands by itself, so a worker adds it up as it reads
 * it, and a partition has only one place.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_HOST_TOPIC_H
#define BLKIN_TOOLS_WORK_HOST_TOPIC_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/hosts/fleet.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>

struct host_topic;

/* groups: the key host-groups. Returns NULL with error set. */
struct host_topic *host_topic_new(rd_kafka_t *consumer, const char *name, const char *groups,
                                  struct work_stage *stage, struct error *error);
/* NULL is allowed. */
void host_topic_free(struct host_topic *topic);

/* What was added up since the last commit. */
struct fleet *host_topic_fleet(struct host_topic *topic);

/* committed->offset gets the offset to read next. Returns false after ending_fail(). */
bool host_topic_assign(struct host_topic *topic, rd_kafka_topic_partition_t *committed);

/* places: gets the place, if it has changed since the last commit. */
void host_topic_give_back(struct host_topic *topic, int32_t partition,
                          rd_kafka_topic_partition_list_t *places);

/* The places that have changed since the last commit; and then: they are committed. */
void host_topic_add_places(const struct host_topic *topic, rd_kafka_topic_partition_list_t *places);
void host_topic_committed(struct host_topic *topic);

void host_topic_read(struct host_topic *topic, const rd_kafka_message_t *message, int64_t time_ms);

/* The broker says that nothing follows. */
void host_topic_end(struct host_topic *topic, int32_t partition);

/* Of the partition that is furthest behind; 0 where the log's end was reached. */
int64_t host_topic_behind_ms(const struct host_topic *topic, int64_t now_ms);

#endif
