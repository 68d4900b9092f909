/*
 * The exporter's threads: one sends, helpers do the same beside it, so that several requests are on
 * their way at once. With a spool there are more: one puts batches into it, others send what is in
 * it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SENDER_H
#define BLKIN_OUTPUT_SENDER_H

#include "courier.h"

#include <pthread.h>

enum work {
    WORK_MAIN,    /* probes the transport, sends, and finishes the transport */
    WORK_SEND,    /* sends what is in the spool, then batches */
    WORK_RECORDS, /* sends what is in the spool */
    WORK_SPOOL,   /* puts batches into the spool */
};

struct worker {
    struct courier courier; /* the thread's own from sender_start() to sender_join() */
    enum work work;
    struct sender *sender;
    pthread_t thread;
    bool is_running;
};

struct sender {
    struct worker *workers; /* the first one is WORK_MAIN */
    unsigned count;
    pthread_mutex_t lock;
    pthread_cond_t is_probed_condition;
    bool is_probed;
    struct reply probe; /* the peer's answer to a first, empty batch */
    bool is_kept;       /* all that was accepted; else error tells why it may not be */
    struct error error;
};

/* How many threads there are to be. */
struct sender_threads {
    unsigned helpers; /* beside the main one */
    bool has_spooler;
    unsigned of_records;
};

static inline unsigned sender_count(const struct sender_threads *threads)
{
    return 1 + threads->helpers + threads->has_spooler + threads->of_records;
}

/* Makes couriers like this one; the caller gives each its transport and encoders, which are the
 * sender's then. Returns false when out of memory. */
bool sender_open(struct sender *sender, const struct courier *courier,
                 const struct sender_threads *threads);
void sender_close(struct sender *sender); /* also of one that is not open */

/* Returns false if a thread that nothing goes without cannot be had: join the others then. */
bool sender_start(struct sender *sender);

/* Waits for the probe's answer, but not past until_ms. */
bool sender_wait_for_probe(struct sender *sender, int64_t until_ms);

/* Ends all waiting for the network. */
void sender_cancel(struct sender *sender);

/* Waits for the end of the threads: stop the outbox and cancel them before. */
void sender_join(struct sender *sender);

#endif
