/*
 * The threads of a spool: one puts batches in, and besides the sender some more send records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_THREADS_H
#define BLKIN_OUTPUT_SPOOL_THREADS_H

#include "delivery.h"

#include <pthread.h>

/* Sends records until the end; is_main: or until the spool is empty. */
void drain_spool(struct courier *courier, bool is_main);

struct spool_threads;

/* Each gets a transport, which is its own from now on, and is a courier as the given one. */
struct spool_threads *spool_threads_new(const struct courier *courier, unsigned senders);
void spool_threads_give(struct spool_threads *threads, struct transport *transport);

/* Returns false if there are no threads to be had; those that run end when the outbox is done. */
bool spool_threads_start(struct spool_threads *threads, struct encoder *encoder,
                         struct encoder *tap_encoder);

void spool_threads_cancel(struct spool_threads *threads);

/* Waits for their end, which the ends of outbox and spool bring about. */
void spool_threads_join(struct spool_threads *threads);

/* NULL is allowed. */
void spool_threads_free(struct spool_threads *threads);

#endif
