/*
 * Samples of hosts to a topic of Kafka: batches of what happened between them (otlp_points.h), a
 * message for each host.
 *
 * librdkafka's threads speak to the brokers. Whoever calls never waits, but at the end. What cannot
 * be had is counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_POINTS_SENDER_H
#define BLKIN_OUTPUT_POINTS_SENDER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/hosts/samples.h"

struct points_sender_options {
    const char *url;        /* kafka://BROKER[,BROKER...]/TOPIC[?OPTION=VALUE&...] */
    const char *kafka_file; /* lines of key=value; NULL or "": none */
    int64_t send_ms;        /* a batch; 0: each sample */
    void (*report)(void *context, const char *message); /* of librdkafka's */
    void *context;
};

struct points_sender_counts {
    uint64_t samples;
    uint64_t points; /* = acknowledged + failed + dropped + waiting */
    uint64_t acknowledged;
    uint64_t failed;  /* given up by librdkafka; a part may be there, see below */
    uint64_t dropped; /* for want of room or memory */
    uint64_t waiting;
    uint64_t possibly_persisted; /* of failed: no answer came */
    uint64_t messages;
    uint64_t bytes;   /* of these, before they are compressed */
    uint64_t no_room; /* samples that were left out: see samples.h */
};

struct points_sender;

/* Speaks to nobody yet. Returns NULL with error set. */
struct points_sender *points_sender_open(const struct points_sender_options *options,
                                         struct error *error);

/* Sends what is due, if anything; any time is fine, once a second is enough. */
void points_sender_poll(struct points_sender *sender, int64_t now_ms);

void points_sender_take(struct points_sender *sender, const struct sample *sample, int64_t now_ms);

struct points_sender_counts points_sender_counts(const struct points_sender *sender);

/* Sends what it has, for limit_ms at most, and tells how that went. NULL is allowed. */
struct points_sender_counts points_sender_close(struct points_sender *sender, int limit_ms);

#endif
