/*
 * The URL of a Kafka topic, and the set-up of librdkafka for all parts that use it. The program's
 * settings come first, then the options of the URL, then the lines of a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_KAFKA_CONF_H
#define BLKIN_DELIVER_KAFKA_CONF_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The parameter or key that names a file of secrets for librdkafka, see struct kafka_setup. */
#define KAFKA_FILE "kafka-file"

/* kafka://BROKER[:PORT][,BROKER[:PORT]...]/TOPIC[?OPTION=VALUE&...]: the options are
 * librdkafka's. */
struct kafka_url {
    const char *name; /* the name of the parameter or key, for messages; static */
    char brokers[768];
    char topic[250];
    char options[1024]; /* the text after the '?' */
    char shown[1100];   /* for messages: without the options */
};

bool is_kafka_url(const char *text);

/* Returns false with error set. */
bool kafka_url_parse(struct kafka_url *url, const char *name, const char *text,
                     struct error *error);

/* Changes the topic, for the same brokers. */
void kafka_url_set_topic(struct kafka_url *url, const char *topic);

#ifdef HAS_KAFKA

#include "transport.h"

#include <librdkafka/rdkafka.h>

struct kafka_setup {
    const struct kafka_url *url; /* the brokers, and options */
    /* The file of KAFKA_FILE: lines `key=value`, as librdkafka's tools have them. The file may
     * contain passwords, so only its owner may have access. NULL or "": none. */
    const char *file;
    /* Options that the URL and the file must not set, because they would break the program's
     * guarantees. Ends in NULL; NULL: none. */
    const char *const *reserved;
    const char *const (*settings)[2]; /* the program's names and values; ends in a NULL */
    void *context;                    /* for the callbacks, which may be NULL */
    void (*error)(rd_kafka_t *handle, int code, const char *reason, void *context);
    void (*delivered)(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context);
    void (*rebalance)(rd_kafka_t *handle, rd_kafka_resp_err_t code,
                      rd_kafka_topic_partition_list_t *list, void *context);
    void (*log)(const rd_kafka_t *handle, int level, const char *facility, const char *text);
    bool is_log_polled; /* rd_kafka_poll() calls log(), not a thread of librdkafka */
};

/* Creates a client of librdkafka. A URL with secret options is an error, because all users of this
 * machine can see the URL. Returns NULL with error set. */
rd_kafka_t *kafka_open(rd_kafka_type_t type, const struct kafka_setup *setup, struct error *error);

/*
 * Returns the partition of a trace: librdkafka's partitioner "fnv1a", with the 32 hex digits of the
 * trace id as the key. OpenTelemetry's exporter (partition_traces_by_id) chooses the same
 * partition.
 */
uint32_t kafka_partition(uint64_t high, uint64_t low, uint32_t partitions);

/* See arrange() of struct transport. While the number of partitions is unknown (0), all spans are
 * one run. */
bool kafka_arrange_run(uint32_t partitions, const struct encoder *encoder, struct body_run run,
                       size_t bytes, struct arranged *arranged);

/* Sets error to a message about an error of a broker, a topic or a connection: where, librdkafka's
 * text, and a remedy if one is known. */
void kafka_describe(struct error *error, const char *where, rd_kafka_resp_err_t code,
                    const char *reason);

#endif

#endif
