/*
 * A topic of Kafka, read as a whole: all partitions, in no group, only what was committed.
 * librdkafka's threads speak to the brokers, and wake who polls topic_fd().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_TOPIC_H
#define BLKIN_TOOLS_SERVICE_TOPIC_H

#include "babeltrace-plugin/deliver/kafka_url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPIC_PARTITIONS_MAX 256

struct topic_message {
    int32_t partition;
    int64_t offset;
    int64_t log_ns;  /* when it came to the topic, since 1970; 0: the topic does not know */
    const char *key; /* NULL: none */
    size_t key_length;
    const char *data; /* NULL: none, which removes what had the key */
    size_t length;
};

struct topic_options {
    const char *client_id;     /* of Kafka */
    const char *fetch_wait_ms; /* so long a broker waits until it says that there is nothing new */
    const struct kafka_url *url; /* it is copied */
    const char *kafka_file;      /* lines of key=value; NULL or "": none */
    int64_t since_ns;       /* where no offset is given: from this time of the log on; 0: all */
    const int64_t *offsets; /* of TOPIC_PARTITIONS_MAX: what to read next; -1: not given */
    /* Returns false to end it. */
    bool (*message)(void *context, const struct topic_message *message);
    /* Of a partition that has lost what was to be read next: it goes on with what there is. */
    void (*gap)(void *context, int32_t partition);
    void *context;
};

struct topic;

/* Speaks to nobody yet. Returns NULL with error set. */
struct topic *topic_open(const struct topic_options *options, struct error *error);
void topic_close(struct topic *topic); /* NULL is allowed */

/* Readable when there is something to read. */
int topic_fd(const struct topic *topic);

/* Reads what there is, for about 100 ms; *has_more: there is more now. Returns false if message()
 * did. */
bool topic_read(struct topic *topic, bool *has_more);

/*
 * Reads all that there is: looks which partitions there are, and reads them to their ends. Gives up
 * after limit_ms without a message. waiting, if not NULL, is told once, with the options' context,
 * why nothing has come for 3 s. Returns false with error set.
 */
bool topic_read_all(struct topic *topic, int limit_ms,
                    void (*waiting)(void *context, const char *why), struct error *error);

/*
 * Looks which partitions there are, for limit_ms at most; to be called at first, and now and then.
 * In two steps, as it may take long: topic_ask(), which any thread may call, but one at a time;
 * then topic_take_answer() in the thread of all other functions.
 */
void topic_ask(struct topic *topic, int limit_ms);
void topic_take_answer(struct topic *topic, int limit_ms);

/* Instead: reads the first one, from its beginning, without waiting for anything. Once more: anew.
 */
bool topic_read_first(struct topic *topic);

/* 0: not known yet. */
int32_t topic_partitions(const struct topic *topic);

/* Has all been read that there was? */
bool topic_is_at_end(const struct topic *topic);

/* Why nothing comes; NULL: all is well. */
const char *topic_problem(const struct topic *topic);

#endif
