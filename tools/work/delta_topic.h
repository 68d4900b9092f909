/*
 * The topic of deltas, read as a whole: all partitions, in no group, only what was committed.
 * librdkafka's threads speak to the brokers, and wake who polls delta_topic_fd().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_DELTA_TOPIC_H
#define BLKIN_TOOLS_WORK_DELTA_TOPIC_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELTA_PARTITIONS_MAX 256

struct delta_message {
    int32_t partition;
    int64_t offset;
    int64_t log_ns; /* when it came to the topic, since 1970; 0: the topic does not know */
    const char *data;
    size_t length;
};

struct delta_topic_options {
    const char *brokers_url; /* kafka://BROKER[,BROKER...]/ANY[?OPTION=VALUE&...] */
    const char *name;        /* of the topic */
    const char *kafka_file;  /* lines of key=value; NULL or "": none */
    int64_t since_ns;        /* where no offset is given: from this time of the log on; 0: all */
    const int64_t *offsets;  /* of DELTA_PARTITIONS_MAX: what to read next; -1: not given */
    /* Returns false to end it. */
    bool (*message)(void *context, const struct delta_message *message);
    /* Of a partition that has lost what was to be read next: it goes on with what there is. */
    void (*gap)(void *context, int32_t partition);
    void *context;
};

struct delta_topic;

/* Speaks to nobody yet. Returns NULL with error set. */
struct delta_topic *delta_topic_open(const struct delta_topic_options *options,
                                     struct error *error);
void delta_topic_close(struct delta_topic *topic); /* NULL is allowed */

/* Its name for messages: kafka://BROKER[,BROKER...]/TOPIC. Returns false with error set. */
bool delta_topic_show(const char *brokers_url, const char *name, char *shown, size_t size,
                      struct error *error);

/* Readable when there is something to read. */
int delta_topic_fd(const struct delta_topic *topic);

/* Reads what there is, for about 100 ms; *has_more: there is more now. Returns false if message()
 * did. */
bool delta_topic_read(struct delta_topic *topic, bool *has_more);

/* Looks which partitions there are, for limit_ms at most; to be called at first, and now and then.
 */
void delta_topic_look(struct delta_topic *topic, int limit_ms);

/* 0: not known yet. */
int32_t delta_topic_partitions(const struct delta_topic *topic);

/* Has all been read that there was? */
bool delta_topic_is_at_end(const struct delta_topic *topic);

/* Why nothing comes; NULL: all is well. */
const char *delta_topic_problem(const struct delta_topic *topic);

#endif
