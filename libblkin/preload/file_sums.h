/*
 * Sums of a thread's calls on files, and each interaction's share of the sums.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_FILE_SUMS_H
#define BLKIN_PRELOAD_FILE_SUMS_H

#include "blkin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum file_kind {
    FILE_READ,
    FILE_WRITE, /* writes, and other changes of the file */
    FILE_SYNC,  /* calls that wait for the disk */
    FILE_KINDS
};

/* The sums of a thread, without calls that were spans. */
struct file_sums {
    struct {
        uint64_t calls, bytes, ns;
    } own[FILE_KINDS]; /* calls while the thread had at most one request to answer */
    struct {
        uint64_t calls, syncs, ns;
    } shared; /* calls while the thread had several requests */
};

/* An interaction's share is at_answer minus at_begin. */
struct file_totals {
    struct file_sums at_begin, at_answer;
};

/* Adds a call of this thread. is_shared: the thread has several requests to answer. */
void file_sums_add(enum file_kind kind, size_t bytes, uint64_t ns, bool is_shared);

/* Called when an interaction begins on this thread. The interaction gets no share of earlier calls.
 */
void file_sums_begin(struct file_totals *totals);

/* Called when the thread that began the interaction has sent a part of its answer. */
void file_sums_answer(struct file_totals *totals);

/* Tags the recorded span with its share. Any thread may call this function. */
void file_sums_tag(struct blkin_span *span, const struct file_totals *totals);

#endif
