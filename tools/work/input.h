/*
 * The input topic of a worker (key input): the worker's place in each of its partitions, and the
 * messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_INPUT_H
#define BLKIN_TOOLS_WORK_INPUT_H

#include "transaction.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>

struct input;

/* Returns NULL when out of memory. */
struct input *input_new(rd_kafka_t *consumer, const struct work_settings *settings,
                        struct work_stage *stage);
void input_free(struct input *input); /* NULL is allowed */

/* ---- assigned and revoked partitions */

/* Sets committed->offset to the next offset to read. Returns false after ending_fail(). */
bool input_assign(struct input *input, rd_kafka_topic_partition_t *committed);

/* Adds the partition's place to `places` if it has changed since the last commit. Then drops the
 * partition with its open traces. */
void input_give_back(struct input *input, const rd_kafka_topic_partition_t *partition,
                     rd_kafka_topic_partition_list_t *places);

/* input_add_places() adds the places that have changed since the last commit; input_committed()
 * follows that commit. */
void input_add_places(const struct input *input, rd_kafka_topic_partition_list_t *places);
void input_committed(struct input *input);

/* ---- reading */

void input_read(struct input *input, const rd_kafka_message_t *message);

/* Handles librdkafka's message that the log of a partition has no more messages now. */
void input_end(struct input *input, const rd_kafka_message_t *message);

/* Closes the due traces of one partition without new messages. A new message would close them. */
void input_pass_time(struct input *input);

/* If open traces take more than max_open_bytes, closes traces early down to 90 % of that. */
void input_relieve(struct input *input);

/* Returns the lag of the partition that is furthest behind; 0 at the log's end. */
double input_behind_s(const struct input *input);

#endif
