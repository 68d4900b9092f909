/*
 * Sends one body of spans until each span has an outcome or is given up. The exporter's threads
 * that do so are the senders: a main thread, and helpers for parallel requests. With a spool, one
 * more thread puts batches into the spool, and others send its records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_SEND_H
#define BLKIN_DELIVER_SEND_H

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "queue.h"
#include "spool.h"
#include "transport.h"

#include <pthread.h>
#include <stdatomic.h>

#define SENT_TOGETHER 256 /* the most runs that are sent together, only with await() */

#define RETRY_FIRST_MS   100
#define RETRY_LONGEST_MS 1500 /* so a collector that works again gets spans within 2 s */

/* ---- messages for the operator: send.c ------------------------------------------------------- */

/*
 * One message a minute of each kind at most. Each begins with a stable id: BK8001 and so on, in
 * this order (see blkin-messages(5)). A new kind goes to the end, because an id never changes its
 * meaning.
 */
enum report {
    REPORT_UNREACHED, /* the sender retries */
    REPORT_BACK,
    REPORT_UNDELIVERED,
    REPORT_REFUSED,
    REPORT_WARNING, /* the collector accepted all spans, but has a remark */
    REPORT_INVALID,
    REPORT_TOO_LARGE,
    REPORT_POSSIBLY_PERSISTED,
    REPORT_DROPPING,
    REPORT_SPOOLING,
    REPORT_SPOOL_FAILS,
    REPORT_SPOOL_LOSES,
    REPORTS
};

/* Any thread may use a reporter. */
struct reporter {
    void (*report)(void *context, const char *message);
    void *context;
    _Atomic int64_t next_ms[REPORTS]; /* the earliest time of the next message of a kind */
};

__attribute__((format(printf, 3, 4))) void reporter_say(struct reporter *reporter, enum report kind,
                                                        const char *format, ...);

/* ---- one sender ------------------------------------------------------------------------------ */

enum work {
    WORK_MAIN,    /* probes the transport, sends, and finishes the transport */
    WORK_SEND,    /* sends records of the spool, then batches */
    WORK_RECORDS, /* sends records of the spool */
    WORK_SPOOL,   /* puts batches into the spool */
};

/* The options of all senders of an exporter. */
struct senders_options {
    const struct protocol *protocol;
    struct span_queue *queue;
    struct spool *spool;                          /* NULL: no spool */
    void (*taken)(void *context, uint64_t spans); /* see exporter.h; may be NULL */
    void *context;
    struct reporter *reporter;
    int64_t retry_timeout_ms;
    size_t body_bytes; /* the most bytes of a body, unless a single span is larger */
};

/* A thread with its state: it delivers batches of the queue, or records of the spool. From
 * its start to its end the struct belongs to the thread. */
struct sender {
    struct senders_options options; /* body_bytes decreases when a body was too large */
    enum work work;
    pthread_t thread;
    bool is_running;
    struct transport *transport; /* NULL: the thread sends nothing */
    struct encoder *encoder;
    struct batch *batch;
    struct spool_record *record;     /* NULL: the body is from the batch */
    struct body body;                /* the spans being sent */
    struct arranged spare;           /* memory for a sorted body */
    struct transport_reply *replies; /* to runs that are sent together */
    struct transport_reply reply;    /* the last one */
    struct backoff backoff;
    bool is_unreached; /* the last attempt has failed */
    bool was_patient;  /* the queue, before the last attempt */
    /* of WORK_MAIN */
    struct transport_reply probe; /* the peer's answer to a first, empty batch: queue_begin() */
    bool is_durable;              /* at the end: no accepted span can be lost; else see error */
    struct error error;
};

/*
 * Delivers sender->body. If the collector does not take the whole body, sends halves, then
 * quarters, until each span has an outcome. With a spool, a body that fails goes to the spool.
 * Returns OUTCOME_UNDELIVERED if spans are given up: these have no outcome yet.
 */
enum outcome send_body(struct sender *sender);

/* Puts the run into the spool. Returns false, with error set, if the spool does not take it. */
bool send_put(struct sender *sender, struct body_run run, struct error *error);

/* Gives `spans` spans of the batch or record an outcome. */
void send_settle(struct sender *sender, enum outcome outcome, uint32_t spans);

/* Returns the time that this batch or record may take. */
struct queue_time_limit send_time_limit(struct sender *sender);

/* Runs the thread of a struct sender until the queue is done: the exporter starts it. */
void *sender_run(void *sender);

#endif
