/*
 * Sending: one body of spans, until each of them has its outcome or is given up; and the exporter's
 * threads that do so, the senders. A main thread sends; helpers send beside it, so that several
 * requests run at once. With a spool, one more thread puts batches into it, and others send its
 * records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SEND_H
#define BLKIN_OUTPUT_SEND_H

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/encode/protocol.h"
#include "queue.h"
#include "spool.h"
#include "transport.h"

#include <pthread.h>
#include <stdatomic.h>

#define SENT_TOGETHER 256 /* at most so many runs, and only with await() */

#define RETRY_FIRST_MS   100
#define RETRY_LONGEST_MS 1500 /* so a collector that is back gets spans within 2 s */

/* ---- messages for the operator: send.c ------------------------------------------------------- */

/*
 * At most one a minute of each kind. Each begins with a stable id: BK8001 and so on, in this order
 * (see blkin-messages(5)). A new kind goes to the end, because an id never changes its meaning.
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

/* Any thread may use it. */
struct reporter {
    void (*report)(void *context, const char *message);
    void *context;
    _Atomic int64_t next_ms[REPORTS]; /* no message of this kind before */
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

/* What all senders of an exporter have in common. */
struct senders_options {
    const struct protocol *protocol;
    struct span_queue *queue;
    struct spool *spool;                          /* NULL: none */
    void (*taken)(void *context, uint64_t spans); /* see exporter.h; may be NULL */
    void *context;
    struct reporter *reporter;
    int64_t retry_timeout_ms;
    size_t body_bytes; /* the limit of a body, unless a single span is larger */
};

/* A thread, and all that it needs to deliver batches of the queue, or records of the spool. It
 * belongs to the thread from senders_start() to senders_join(). */
struct sender {
    struct senders_options options; /* body_bytes becomes less when a body was too large */
    struct senders *of;
    enum work work;
    pthread_t thread;
    bool is_running;
    struct transport *transport; /* NULL: it sends nothing */
    struct encoder *encoder;
    struct batch *batch;
    struct spool_record *record;     /* NULL: the body is of the batch */
    struct body body;                /* the spans being sent */
    struct arranged spare;           /* memory of a body that was arranged */
    struct transport_reply *replies; /* to runs that are sent together */
    struct transport_reply reply;    /* the last one */
    struct backoff backoff;
    bool is_unreached; /* the last attempt has failed */
};

/*
 * Delivers sender->body. If the collector does not take it as a whole, sends halves, then quarters,
 * until each span has its outcome. With a spool, what the collector does not take at once goes
 * there. Returns OUTCOME_UNDELIVERED if spans are given up: they have no outcome yet.
 */
enum outcome send_body(struct sender *sender);

/* Puts the run into the spool. Returns false, with error set, if the spool does not take it. */
bool send_put(struct sender *sender, struct body_run run, struct error *error);

/* So many spans of the batch or record get this outcome. */
void send_settle(struct sender *sender, enum outcome outcome, uint32_t spans);

/* How long this batch or record may be tried. */
struct queue_patience send_patience(struct sender *sender);

/* ---- all of them: sender.c ------------------------------------------------------------------- */

struct senders {
    struct sender *list; /* the first one is WORK_MAIN */
    unsigned count;
    pthread_mutex_t lock;
    pthread_cond_t is_probed_condition;
    bool is_probed;
    struct transport_reply probe; /* the peer's answer to a first, empty batch */
    bool is_kept;                 /* no accepted span can be lost; else error tells why */
    struct error error;
};

/* How many threads to make. */
struct senders_threads {
    unsigned helpers; /* beside the main thread */
    bool has_spooler;
    unsigned of_records; /* that send only records */
};

static inline unsigned senders_count(const struct senders_threads *threads)
{
    return 1 + threads->helpers + threads->has_spooler + threads->of_records;
}

/* The caller then gives each sender its transport and encoders, which senders_close() frees.
 * Returns false when out of memory. */
bool senders_open(struct senders *senders, const struct senders_options *options,
                  const struct senders_threads *threads);
void senders_close(struct senders *senders); /* also of those that are not open */

/* Returns false if the main thread or the spooler cannot start; then call senders_join(), too. */
bool senders_start(struct senders *senders);

/* Waits for the answer to the probe, but not past until_ms. Returns whether it is there. */
bool senders_wait_for_probe(struct senders *senders, int64_t until_ms);

/* All requests that run or come fail at once. */
void senders_cancel(struct senders *senders);

/* Waits for the end of the threads; stop the queue before, and cancel the requests. */
void senders_join(struct senders *senders);

#endif
