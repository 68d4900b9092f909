/*
 * The exporter's threads, its workers. A main thread sends; helpers send beside it, so that several
 * requests run at once. With a spool, one more thread puts batches into it, and others send its
 * records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SENDER_H
#define BLKIN_OUTPUT_SENDER_H

#include "courier.h"

#include <pthread.h>

enum work {
    WORK_MAIN,    /* probes the transport, sends, and finishes the transport */
    WORK_SEND,    /* sends records of the spool, then batches */
    WORK_RECORDS, /* sends records of the spool */
    WORK_SPOOL,   /* puts batches into the spool */
};

struct worker {
    struct courier courier; /* belongs to the thread from sender_start() to sender_join() */
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
    bool is_kept;       /* no accepted span can be lost; else error tells why */
    struct error error;
};

/* How many threads to make. */
struct sender_threads {
    unsigned helpers; /* beside the main thread */
    bool has_spooler;
    unsigned of_records; /* that send only records */
};

static inline unsigned sender_count(const struct sender_threads *threads)
{
    return 1 + threads->helpers + threads->has_spooler + threads->of_records;
}

/* Makes workers with copies of this courier. The caller then gives each one its transport and
 * encoders, which sender_close() frees. Returns false when out of memory. */
bool sender_open(struct sender *sender, const struct courier *courier,
                 const struct sender_threads *threads);
void sender_close(struct sender *sender); /* also of one that is not open */

/* Returns false if the main thread or the spooler cannot start; then call sender_join(), too. */
bool sender_start(struct sender *sender);

/* Waits for the answer to the probe, but not past until_ms. Returns whether it is there. */
bool sender_wait_for_probe(struct sender *sender, int64_t until_ms);

/* All requests that run or come fail at once. */
void sender_cancel(struct sender *sender);

/* Waits for the end of the threads; stop the outbox before, and cancel the requests. */
void sender_join(struct sender *sender);

#endif
