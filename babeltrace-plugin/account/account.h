/*
 * The display of the counters while the sink runs: a statistics file, a page for Prometheus, a
 * progress line, and a warning when a live session stops. A separate thread displays the counters,
 * so the output continues while the graph's thread waits.
 *
 * The age of the counters: the counters of delivery (struct exporter_counts) are read when they are
 * shown. The counters of events belong to the graph's thread, which needs no lock to count an
 * event. That thread publishes a copy after a batch of messages and when it is idle, at most once
 * per ACCOUNT_PUBLISH_MS. So the copy is older only while the thread waits for room in the queue,
 * or for a trace reader that does not answer. The output has the time of the copy. Each copy is
 * taken between two messages, so its sums are right.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_ACCOUNT_H
#define BLKIN_ACCOUNT_ACCOUNT_H

#include "babeltrace-plugin/base/error.h"
#include "counters.h"

#define ACCOUNT_PUBLISH_MS 100

/* The texts may be freed after account_open(). */
struct account_options {
    const char *endpoint;   /* as given: secrets are not shown */
    const char *stats_file; /* a path; NULL: none */
    const char *listen;     /* for Prometheus, "[ADDRESS:]PORT"; NULL: none */
    int64_t period_ms;      /* of the file and of the progress line */
    bool shows_progress;
};

/* Any thread calls these functions. */
struct account_callbacks {
    struct exporter_counts (*delivery)(void *context); /* until account_end() returns */
    void (*inform)(void *context, const char *message);
    void (*warn)(void *context, const char *message);
    void *context;
};

struct account;

/* Writes the file for the first time, listens, and starts the thread. Without any output there is
 * no thread before account_watch(). Returns NULL with error set. */
struct account *account_open(const struct account_options *options,
                             const struct account_callbacks *callbacks, struct error *error);

/* Tells the graph's thread, after each batch of messages, whether to publish again. */
bool account_is_due(struct account *account);

/* Publishes these counts. */
void account_publish_now(struct account *account, const struct input_counts *input,
                         const struct assembler_counts *core);

/* Returns the published counts, with the current counts of delivery. */
struct counts account_counts(struct account *account);

/* The trace is a live session's: a warning appears when the session stops, see struct watch. */
void account_watch(struct account *account);

/* Ends the thread, publishes and writes the file a last time; called after the end of delivery.
 * Returns the final counts. Only account_free() may follow. */
struct counts account_end(struct account *account, const struct input_counts *input,
                          const struct assembler_counts *core);

/* NULL is allowed. */
void account_free(struct account *account);

/*
 * Watches whether a live session is alive. Its trace time moves even without events, because LTTng
 * sends a beacon at each tick of the session's live timer. Trace time stops if the session daemon,
 * the consumer daemon or the relay daemon is gone or hangs. Trace time also stops if a program was
 * killed in the middle of a record. All later events may be lost then, and no other sign exists.
 */
#define WATCH_STILL_MS    10000 /* the time without progress before a warning */
#define WATCH_PERIOD_MS   500   /* the longest time between two calls of watch_look() */
#define WATCH_MESSAGE_MAX 256

struct watch {
    int64_t trace_time_ns; /* at the last call */
    int64_t since_ms;      /* when trace time last moved */
    int64_t closed_ms;     /* the time of the last call at which no stream was open */
    bool had_streams;      /* a stream was open at one of the calls */
    bool is_still;         /* trace time stands still, and a warning was given */
    bool is_stalled;       /* the same, and streams have been open for WATCH_STILL_MS */
};

void watch_begin(struct watch *watch, int64_t now_ms);

/* is_stuck: the graph's thread does not return from a call. Returns whether there is a message. */
bool watch_look(struct watch *watch, const struct input_counts *input, bool is_stuck,
                int64_t now_ms, char message[WATCH_MESSAGE_MAX]);

#endif
