/*
 * Sums of a thread's calls on files, and an interaction's part of them.
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
    FILE_WRITE, /* and what else changes the file */
    FILE_SYNC,  /* waits for the disk */
    FILE_KINDS
};

/* What a thread has done so far, beside the calls that were spans. */
struct file_sums {
    struct {
        uint64_t calls, bytes, ns;
    } own[FILE_KINDS]; /* while it had one request to answer */
    struct {
        uint64_t calls, syncs, ns;
    } shared; /* while it had several */
};

/* An interaction's part of it: what was done between these. */
struct file_totals {
    struct file_sums at_begin, at_answer;
};

/* A call of this thread. is_shared: it has several requests to answer. */
void file_sums_add(enum file_kind kind, size_t bytes, uint64_t ns, bool is_shared);

/* An interaction begins on this thread: what the thread has done so far is not the interaction's.
 */
void file_sums_begin(struct file_totals *totals);

/* It has had its answer, or one more part of it, by the same thread, which goes on with others. */
void file_sums_answer(struct file_totals *totals);

/* It is recorded: for tags of what was done meanwhile. By any thread. */
void file_sums_tag(struct blkin_span *span, const struct file_totals *totals);

#endif
