/*
 * The totals of a service since its state folder was made: the sums of its pipelines, and the
 * service's own counters. A file has the totals, so that the account continues after a restart.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TOTALS_H
#define BLKIN_TOOLS_TOTALS_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/stats_file.h"
#include "babeltrace-plugin/base/printer.h"

#include <jansson.h>

/* A counter of the service itself: a uint64_t in the service's struct. */
struct total {
    const char *name;
    size_t offset;
    const char *help;
};

struct totals_table {
    const char *service; /* "agent"; metrics have the name blkin_SERVICE_NAME_total */
    const struct total *own;
    size_t count;
};

/*
 * Converts to JSON and back: {"counters": ..., NAME: VALUE, ...}. The service may add members.
 * totals_read() returns false for an object without "counters", and sets all counters to 0. Missing
 * members become 0.
 */
json_t *totals_json(const struct counts *sinks, const struct totals_table *table, const void *own);
bool totals_read(const json_t *json, struct counts *sinks, const struct totals_table *table,
                 void *own);

/* Returns NULL if the file is not readable or no JSON. Reads large pieces: json_load_file() takes a
 * lock for each byte. */
json_t *json_read(const char *path);
/* Returns the text for a file; NULL: out of memory, or json is NULL. */
char *json_text(const json_t *json, size_t *length);

/* Return or print the service's own counters: as {NAME: VALUE, ...} (NULL: out of memory), and for
 * Prometheus. */
json_t *totals_own_json(const struct totals_table *table, const void *own);
void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own);

/* Logs the sums of all runs: the account of the sinks, then the service's own counters that are not
 * 0. */
void totals_say(const struct counts *sinks, const struct totals_table *table, const void *own);

/* ---- the accounts of readers ----------------------------------------------------------------- */

/*
 * The accounts of readers, the children of a service that run one sink each. The service reads
 * their statistics files and sums the counters.
 */
struct reader_account {
    struct counts counts;
    int64_t events_ns;   /* since 1970: the time of the event counters */
    struct mark settled; /* the next reader's start. The sink writes it if it has a sent-file */
    long pid;
    bool has_ended; /* the reader has written its final account */
};

/* Returns false and leaves account unchanged if the file is missing or incomplete. */
bool reader_account_read(const char *path, struct reader_account *account);

/* sum += part. trace_time_ns becomes the earlier known time. */
void counts_add(struct counts *sum, const struct counts *part);

/*
 * Adds the next run of a reader. Spans that the previous run stored in the spool and this run found
 * there count once. Spans that this run did not find count as unknown.
 */
void counts_follow(struct counts *sum, const struct counts *part);

/*
 * For a run that has ended: subtracts unfinished spans, begins and halves from the totals, as the
 * next run counts them again. Counts awaited events as missing and unsure. Sets all gauges to 0
 * except the number of spans that wait in the spool.
 */
void counts_hand_over(struct counts *counts);

/*
 * For a reader that ends without a successor: does the same as counts_hand_over(), and counts the
 * spans that waited for delivery as undelivered. Returns the number of these spans.
 */
uint64_t counts_close(struct counts *counts);

/* Asks a reader for statistics of its spans. path: the sink's statistics-file. Returns a new
 * document, the last one that the reader wrote; NULL: none yet. */
json_t *reader_statistics(const char *path);

/* Reads the output of counts_json(). Missing counters become 0. */
void counts_read(const json_t *json, struct counts *counts);

#endif
