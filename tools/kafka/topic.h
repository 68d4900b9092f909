/*
 * Reads a whole topic of Kafka: all partitions, without a consumer group, and only committed
 * messages. librdkafka's threads talk to the brokers and make topic_fd() readable.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KAFKA_TOPIC_H
#define BLKIN_TOOLS_KAFKA_TOPIC_H

#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/base/say.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <librdkafka/rdkafka.h>

#define TOPIC_PARTITIONS_MAX 256

struct topic_message {
    int32_t partition;
    int64_t offset;
    int64_t log_ns; /* the broker's time of arrival, since 1970; 0: unknown */
    const char *data;
    size_t length;
};

struct topic_options {
    const char *client_id;       /* of Kafka */
    const char *fetch_wait_ms;   /* how long a broker waits for new messages before it answers */
    const struct kafka_url *url; /* topic_open() copies it */
    const char *kafka_file;      /* lines of key=value; NULL or "": none */
    int64_t since_ns;       /* the begin in partitions without an offset; 0: their first message */
    const int64_t *offsets; /* the next offsets of TOPIC_PARTITIONS_MAX partitions; -1: unknown */
    /* Returns false to end topic_read(). */
    bool (*message)(void *context, const struct topic_message *message);
    /* The partition has lost messages. next -1: the broker has deleted the next ones, and reading
     * continues with the first message that is left. If not, a broker has lost the log's end, and
     * reading continues at `next`. */
    void (*gap)(void *context, int32_t partition, int64_t next);
    int64_t read_ns; /* the log's time of the latest message of an earlier run; 0: none */
    void *context;
};

struct topic;

/* Does not speak to the brokers yet. Returns NULL with error set. */
struct topic *topic_open(const struct topic_options *options, struct error *error);
void topic_close(struct topic *topic); /* NULL is allowed */

/* Returns a descriptor that is readable when messages wait. */
int topic_fd(const struct topic *topic);

/* Reads for about 100 ms at most. Sets *has_more if messages may still wait. Returns false if
 * message() has returned false. */
bool topic_read(struct topic *topic, bool *has_more);

/*
 * Asks for the partitions, and reads them all to their ends. Gives up after limit_ms without a
 * message. Returns false with error set.
 */
bool topic_read_all(struct topic *topic, int limit_ms, struct error *error);

/*
 * Ask the brokers for the partitions, and start to read new partitions. The caller calls both
 * functions before topic_read(), and again from time to time. topic_ask() may take limit_ms; any
 * thread may call it, but one at a time. Then the thread of all other functions calls
 * topic_take_answer().
 */
void topic_ask(struct topic *topic, int limit_ms);
void topic_take_answer(struct topic *topic, int limit_ms);

/* Returns the number of partitions; 0: unknown. */
int32_t topic_partitions(const struct topic *topic);

/* Returns whether each partition was read to its end. */
bool topic_is_at_end(const struct topic *topic);

/* Returns the reason why no messages arrive; NULL: no problem. */
const char *topic_problem(const struct topic *topic);

/* For rd_kafka_conf_set_log_cb(). Logs errors as warnings, as librdkafka recovers by itself. */
static inline void kafka_log_line(const rd_kafka_t *handle, int level, const char *facility,
                                  const char *text)
{
    (void)handle;
    say(level <= 3 ? BK1100 : BK1101, "librdkafka: %s: %s", facility, text);
}

#endif
