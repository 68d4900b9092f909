/*
 * The accounts of readers: children of a service that run the sink each. Read from their statistics
 * files, and added up by the table of counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_ACCOUNT_H
#define BLKIN_TOOLS_READER_ACCOUNT_H

#include "babeltrace-plugin/account/stats_file.h"

struct reader_account {
    struct counts counts;
    int64_t events_ns;   /* since 1970: what the counters of events were then */
    struct mark settled; /* from where another one has to go on, if the sink has a sent-file */
    long pid;
    bool has_ended; /* in order: it has written so */
};

/* Returns false, account as it was, where there is no such file that is whole. */
bool reader_account_read(const char *path, struct reader_account *account);

/* sum += part. trace_time_ns is the earlier one of both, if both are known. */
void counts_add(struct counts *sum, const struct counts *part);

/*
 * The same, where part is of the next run of the same reader: what the one before has left in the
 * spool is what this one has found there, and is counted once; what it has not found is unknown.
 */
void counts_follow(struct counts *sum, const struct counts *part);

/*
 * Of a run that has ended: what it had not done is the next one's, which counts it again. It is
 * taken out of the totals, and all gauges are 0, except those of the spool.
 */
void counts_hand_over(struct counts *counts);

/*
 * What is left of it when its reader is gone: all gauges are 0, except those of the spool. Spans
 * that waited for delivery are given up. Returns how many these were.
 */
uint64_t counts_bury(struct counts *counts);

/*
 * Asks a reader for statistics of its spans: path is the sink's statistics-file. Returns the
 * document that it wrote last, new; NULL: none yet.
 */
json_t *reader_statistics(const char *path);

/* Of counts_json(); those that are not there are 0. */
void counts_read(const json_t *json, struct counts *counts);

#endif
