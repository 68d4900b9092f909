/*
 * The topics that a worker reads, of spans and of hosts' metrics: where it begins to read each of
 * its partitions, what it reads there, and where it stands.
 *
 * Each message of hosts' metrics stands by itself: it is added up as it is read, so nothing of such
 * a partition is ever open.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_TOPICS_H
#define BLKIN_TOOLS_WORK_TOPICS_H

#include "babeltrace-plugin/hosts/fleet.h"
#include "settings.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>

struct topics;

/* Returns NULL with error set. */
struct topics *topics_new(rd_kafka_t *consumer, const struct work_settings *settings,
                          struct work_stage *stage, struct error *error);
void topics_free(struct topics *topics); /* NULL is allowed */

/* Their names: a new list. */
rd_kafka_topic_partition_list_t *topics_list(const struct topics *topics);

/* What hosts have sent since the last commit; NULL: there is no such topic. */
struct fleet *topics_fleet(const struct topics *topics);

/* ---- partitions come and go */

/* committed->offset gets the offset to read next. Returns false after ending_fail(). */
bool topics_assign(struct topics *topics, rd_kafka_topic_partition_t *committed);

/* places: gets the partition's place, if it has changed since the last commit. */
void topics_give_back(struct topics *topics, const rd_kafka_topic_partition_t *partition,
                      rd_kafka_topic_partition_list_t *places);

/* The places that have changed since the last commit; and then: they are committed. */
void topics_add_places(const struct topics *topics, rd_kafka_topic_partition_list_t *places);
void topics_committed(struct topics *topics);

/* ---- reading */

void topics_read(struct topics *topics, const rd_kafka_message_t *message);

/* The broker says that a partition's log has ended. */
void topics_end(struct topics *topics, const rd_kafka_message_t *message);

/* Closes what is due in a partition whose log has ended: no message there tells the time. */
void topics_pass_time(struct topics *topics);

/* Closes traces before their time while there is more than max_open_bytes. */
void topics_relieve(struct topics *topics);

/* Of the partition that is furthest behind; 0 where the log's end was reached. */
double topics_behind_s(const struct topics *topics);

#endif
