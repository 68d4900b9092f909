/*
 * Sends the metrics of hosts to a topic of Kafka: what happened between two samples becomes points
 * (otlp_points.h), and a batch has a message for each host.
 *
 * librdkafka's threads speak to the brokers. Only points_sender_close() waits. Every lost point is
 * counted.
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
    int64_t send_ms;        /* the time between batches; 0: a batch for each sample */
    void (*report)(void *context, const char *message); /* gets librdkafka's messages */
    void *context;
};

struct points_sender_counts {
    uint64_t samples;
    uint64_t points; /* = acknowledged + failed + dropped + waiting */
    uint64_t acknowledged;
    uint64_t failed;  /* librdkafka gave them up; some may have arrived, see below */
    uint64_t dropped; /* no room or memory */
    uint64_t waiting;
    uint64_t possibly_persisted; /* failed ones that may have arrived: no answer came */
    uint64_t messages;
    uint64_t bytes;   /* of messages, before compression */
    uint64_t no_room; /* samples that were left out: see samples.h */
};

static inline void points_counts_add(struct points_sender_counts *sum,
                                     const struct points_sender_counts *part)
{
    sum->samples += part->samples;
    sum->points += part->points;
    sum->acknowledged += part->acknowledged;
    sum->failed += part->failed;
    sum->dropped += part->dropped;
    sum->waiting += part->waiting;
    sum->possibly_persisted += part->possibly_persisted;
    sum->messages += part->messages;
    sum->bytes += part->bytes;
    sum->no_room += part->no_room;
}

struct points_sender;

/* Does not speak to the brokers yet. Returns NULL with error set. */
struct points_sender *points_sender_open(const struct points_sender_options *options,
                                         struct error *error);

/* Sends a batch that is due. To be called about once a second. */
void points_sender_poll(struct points_sender *sender, int64_t now_ms);

void points_sender_take(struct points_sender *sender, const struct sample *sample, int64_t now_ms);

struct points_sender_counts points_sender_counts(const struct points_sender *sender);

/* Sends what is left for limit_ms at most, and returns the final counts: nothing waits any more.
 * NULL is allowed. */
struct points_sender_counts points_sender_close(struct points_sender *sender, int limit_ms);

#endif
