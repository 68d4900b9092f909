/*
 * The accounts of readers, the children of a service that run one sink each. The service reads
 * their statistics files and sums the counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_ACCOUNT_H
#define BLKIN_TOOLS_READER_ACCOUNT_H

#include "babeltrace-plugin/account/stats_file.h"

struct reader_account {
    struct counts counts;
    int64_t events_ns;   /* since 1970: the time of the event counters */
    struct mark settled; /* the next reader's start, if the sink has a sent-file */
    long pid;
    bool has_ended; /* the reader has written its final account */
};

/* Returns false and leaves account unchanged if the file is missing or incomplete. */
bool reader_account_read(const char *path, struct reader_account *account);

/* sum += part. trace_time_ns becomes the earlier known time. */
void counts_add(struct counts *sum, const struct counts *part);

/*
 * The same for the next run of a reader. Spans that the run before left in the spool and this run
 * found there count once. Spans that this run did not find count as unknown.
 */
void counts_follow(struct counts *sum, const struct counts *part);

/*
 * For a run that has ended: subtracts unfinished work from the totals, as the next run counts that
 * work again. Sets all gauges to 0 except those of the spool.
 */
void counts_hand_over(struct counts *counts);

/*
 * For a reader that ends without a successor: the same, and counts the spans that waited for
 * delivery as undelivered. Returns their number.
 */
uint64_t counts_close(struct counts *counts);

/* Asks a reader for statistics of its spans. path: the sink's statistics-file. Returns a new
 * document, the last one that the reader wrote; NULL: none yet. */
json_t *reader_statistics(const char *path);

/* Reads the output of counts_json(). Missing counters become 0. */
void counts_read(const json_t *json, struct counts *counts);

#endif
