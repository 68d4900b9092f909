/*
 * The sender: the thread that sends, and helpers that do the same beside it, so that several
 * requests are on their way at once.
 *
 * It knows nothing of babeltrace. With a spool there are more that send what is in there, but
 * nobody else sends what comes while that is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SENDER_H
#define BLKIN_OUTPUT_SENDER_H

#include "delivery.h"

#include <pthread.h>

struct helper {
    struct courier courier;
    pthread_t thread;
    bool is_running;
};

struct sender {
    struct courier courier; /* the thread's own from sender_start() to sender_join() */
    pthread_t thread;
    struct helper *helpers;
    unsigned helper_count;
    pthread_mutex_t lock;
    pthread_cond_t is_probed_condition;
    bool is_probed;
    struct reply probe; /* the peer's answer to a first, empty batch */
    bool is_kept;       /* all that was accepted; else error tells why it may not be */
    struct error error;
};

/* Before it is started, once courier is set: helpers, each a courier as that one but for transport
 * and encoders, which are its own; the caller sets them. Returns false when out of memory. */
bool sender_make_helpers(struct sender *sender, unsigned count);

/*
 * Starts the threads; set courier before. The first one probes the transport, delivers what the
 * outbox has until that ends, and finishes the transport. Returns false when there is no thread to
 * be had.
 */
bool sender_start(struct sender *sender);

/* Waits for the probe's answer, but not past until_ms. */
bool sender_wait_for_probe(struct sender *sender, int64_t until_ms);

/* Ends all waiting for the network. */
void sender_cancel(struct sender *sender);

/* Waits for the end of the threads: stop the outbox and cancel them before. */
void sender_join(struct sender *sender);

/* With their transports and encoders. */
void sender_free_helpers(struct sender *sender);

#endif
