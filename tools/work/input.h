/*
 * The topic that a worker reads (key input): where the worker begins to read each of its
 * partitions, what it reads there, and how far it has read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_INPUT_H
#define BLKIN_TOOLS_WORK_INPUT_H

#include "settings.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>

struct input;

/* Returns NULL when out of memory. */
struct input *input_new(rd_kafka_t *consumer, const struct work_settings *settings,
                        struct work_stage *stage);
void input_free(struct input *input); /* NULL is allowed */

/* ---- partitions come and go */

/* committed->offset gets the offset to read next. Returns false after ending_fail(). */
bool input_assign(struct input *input, rd_kafka_topic_partition_t *committed);

/* places: gets the partition's place, if it has changed since the last commit. */
void input_give_back(struct input *input, const rd_kafka_topic_partition_t *partition,
                     rd_kafka_topic_partition_list_t *places);

/* The places that have changed since the last commit; and then: they are committed. */
void input_add_places(const struct input *input, rd_kafka_topic_partition_list_t *places);
void input_committed(struct input *input);

/* ---- reading */

void input_read(struct input *input, const rd_kafka_message_t *message);

/* The broker says that a partition's log has ended. */
void input_end(struct input *input, const rd_kafka_message_t *message);

/* Closes what is due in a partition whose log has ended: no message there tells the time. */
void input_pass_time(struct input *input);

/* Closes traces before their time while there is more than max_open_bytes. */
void input_relieve(struct input *input);

/* Of the partition that is furthest behind; 0 where the log's end was reached. */
double input_behind_s(const struct input *input);

#endif
