/*
 * The display of the account while the sink runs: a statistics file, a page for Prometheus, a line
 * now and then, a word when a live session stands still. A thread of its own does it, so that it
 * goes on while the graph's thread waits.
 *
 * How old the shown counters are: those of delivery (struct exporter_counts) are read when they are
 * shown. Those of events are the graph's thread's own, which costs nothing per event; it publishes
 * a copy after a batch of messages and when there is none to read, at most each
 * ACCOUNT_PUBLISH_MS. So they are older than that only while that thread waits for room in the
 * queue or for a trace reader that does not answer. The time of the copy is shown with it. Each
 * copy is taken between two messages: in it, and in what is shown, the sums hold.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_ACCOUNT_H
#define BLKIN_ACCOUNT_ACCOUNT_H

#include "babeltrace-plugin/base/error.h"
#include "counters.h"

#define ACCOUNT_PUBLISH_MS 100

/* Texts need not live longer than account_open(). */
struct account_options {
    const char *endpoint;   /* as given: what is secret in it is not shown */
    const char *stats_file; /* a path; NULL: none */
    const char *listen;     /* for Prometheus, "[ADDRESS:]PORT"; NULL: do not */
    int64_t period_ms;      /* of the file and of the progress line */
    bool shows_progress;
};

/* All are called from any thread. */
struct account_callbacks {
    struct exporter_counts (*delivery)(void *context); /* until account_end() returns */
    void (*inform)(void *context, const char *message);
    void (*warn)(void *context, const char *message);
    void *context;
};

struct account;

/*
 * Writes the file for the first time, listens, starts the thread; without anything to show there is
 * none. Returns NULL with error set.
 */
struct account *account_open(const struct account_options *options,
                             const struct account_callbacks *callbacks, struct error *error);

/* For the graph's thread, after each batch of messages: is it time to publish again? */
bool account_is_due(struct account *account);

/* What is shown from now on. */
void account_publish_now(struct account *account, const struct input_counts *input,
                         const struct assembler_counts *core);

/* What was published last, with the delivery of now. */
struct counts account_counts(struct account *account);

/* The trace is a live session's: from now on a word is said when it stands still, see watch.h. */
void account_watch(struct account *account);

/*
 * Ends the thread, publishes a last time and writes the file a last time; after the end of the
 * delivery. Returns the final counters. Only account_free() may follow.
 */
struct counts account_end(struct account *account, const struct input_counts *input,
                          const struct assembler_counts *core);

/* NULL is allowed. */
void account_free(struct account *account);

#endif
