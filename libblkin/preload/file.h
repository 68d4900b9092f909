/*
 * File calls: spans below the request that they are made for, or totals of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_FILE_H
#define BLKIN_PRELOAD_FILE_H

#include "preload.h"

/* What a thread has done so far. */
struct file_totals {
    uint64_t calls;
    uint64_t ns;
};

/*
 * A call on a descriptor that is not a traced socket: read, write, sendfile's source. begin returns
 * false if it is of no interest; then there is no end. name is a literal.
 */
struct file_call {
    uint64_t start_ns;
    const char *name;
    int fd;
};
bool file_call_begin(struct file_call *call, int fd, const char *name);
/* offset: -1 if the call has none. Called after the real call, errno being what that has left. */
void file_call_end(struct file_call *call, ssize_t result, int64_t offset);

/* An interaction begins on this thread: what it has done so far is not the interaction's. */
void file_interaction_begins(struct file_totals *at_begin);
/* It ends on the same thread, and its span is recorded: for tags of the difference. */
void file_interaction_ends(struct blkin_span *span, const struct file_totals *at_begin);

#endif
