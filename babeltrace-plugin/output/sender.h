/*
 * The sender: the thread that sends.
 *
 * It knows nothing of babeltrace. With a spool it is one of several that send what is in there, and
 * the only one that sends what comes while that is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SENDER_H
#define BLKIN_OUTPUT_SENDER_H

#include "delivery.h"

#include <pthread.h>

struct sender {
    struct courier courier; /* the thread's own from sender_start() to sender_join() */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t is_probed_condition;
    bool is_probed;
    struct reply probe; /* the peer's answer to a first, empty batch */
    bool is_kept;       /* all that was accepted; else error tells why it may not be */
    struct error error;
};

/*
 * Starts the thread; set courier before. It probes the transport, delivers what the outbox has
 * until that ends, and finishes the transport. Returns false when there is no thread to be had.
 */
bool sender_start(struct sender *sender);

/* Waits for the probe's answer, but not past until_ms. */
bool sender_wait_for_probe(struct sender *sender, int64_t until_ms);

/* Waits for the end of the thread: stop the outbox and cancel the transport before. */
void sender_join(struct sender *sender);

#endif
