/*
 * The topic of spans: where a worker begins to read each of its partitions, what it reads there,
 * and where it stands.
 *
 * A function that returns false has called ending_fail().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_SPAN_TOPIC_H
#define BLKIN_TOOLS_WORK_SPAN_TOPIC_H

#include "stage.h"

#include <librdkafka/rdkafka.h>

struct span_topic;

/* max_open_bytes: above it, traces are closed before their time. NULL: out of memory. */
struct span_topic *span_topic_new(rd_kafka_t *consumer, const char *name, struct work_stage *stage,
                                  uint64_t max_open_bytes);
/* NULL is allowed. */
void span_topic_free(struct span_topic *topic);

/* ---- partitions come and go */

/* committed->offset gets the offset to read next. */
bool span_topic_assign(struct span_topic *topic, rd_kafka_topic_partition_t *committed);

/* places: gets the place, if it has changed since the last commit. */
void span_topic_give_back(struct span_topic *topic, int32_t partition,
                          rd_kafka_topic_partition_list_t *places);

/* The places that have changed since the last commit; and then: they are committed. */
void span_topic_add_places(const struct span_topic *topic, rd_kafka_topic_partition_list_t *places);
void span_topic_committed(struct span_topic *topic);

/* ---- reading */

void span_topic_read(struct span_topic *topic, const rd_kafka_message_t *message, int64_t time_ms);

/* The broker says that nothing follows this offset. */
void span_topic_end(struct span_topic *topic, int32_t partition, int64_t offset);

/* Closes what is due in a partition whose log has ended: no message there tells the time. */
void span_topic_pass_time(struct span_topic *topic);

/* Closes traces before their time while there is more than max_open_bytes. */
void span_topic_relieve(struct span_topic *topic);

/* Of the partition that is furthest behind; 0 where the log's end was reached. */
int64_t span_topic_behind_ms(const struct span_topic *topic, int64_t now_ms);

#endif
