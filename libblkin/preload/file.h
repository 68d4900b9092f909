/*
 * Calls on files: spans below the request that they are made for, or sums of it.
 *
 * A call is a span if it is known whose it is. Where a thread has taken several requests and not
 * answered them, as in a group commit, the call is for all of them, and none's alone: it is added
 * to what each of them has waited for ("file.shared_us"). The configuration may say otherwise.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_FILE_H
#define BLKIN_PRELOAD_FILE_H

#include "pool.h"
#include "preload.h"

#define FILE_PATH_BYTES 240 /* of a tag */

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

struct interaction;

/*
 * A call whose span is recorded once the request has its answer: see file.c. Filled by its thread;
 * recorded by that, or at the end of the process by another one.
 */
struct file_later {
    uint8_t state;
    uint8_t how;               /* its cause */
    int error;                 /* if result is less than 0 */
    struct interaction *cause; /* referenced */
    const char *name;
    uint64_t start_ns, end_ns;
    int64_t result, offset;
    char path[FILE_PATH_BYTES + 1];
};

#define FILE_LATER_MAX 2

struct file_call {
    const char *name;
    uint64_t start_ns;
    bool is_span;
    bool is_later; /* its span is begun when it is recorded */
    uint8_t how;
    pool_name cause;
    union {
        struct blkin_span span;
        char path[FILE_PATH_BYTES + 1];
    };
};

/*
 * A call on a descriptor that is not a traced socket: read, write, sendfile's source. Returns false
 * if it is of no interest; then there is no end. name is a literal: the call's, as POSIX has it.
 * Outside of preload_enter().
 */
bool file_call_begin(struct file_call *call, int fd, const char *name);

/* Once the real call is done, errno being what that has left. offset: -1 if the call has none. */
void file_call_end(struct file_call *call, ssize_t result, int64_t offset);

/* Is there something that was put off, by the calling thread? */
bool file_is_any_later(const struct file_later *later);
/* Records what was put off. A thread with a later[] of its own has it done before it waits. */
void file_record_later(struct file_later *later);
/* Tracing is off. */
void file_drop_later(struct file_later *later);

/*
 * The program has opened a file, by a path that is absolute or of no use: so that it need not be
 * asked for. Between preload_enter() and preload_leave().
 */
void file_opened(int fd, const char *path);

/* An interaction begins on this thread: what the thread has done so far is not the interaction's.
 */
void file_interaction_begins(struct file_totals *totals);

/* It has had its answer, or one more part of it, by the same thread, which goes on with others. */
void file_interaction_answers(struct file_totals *totals);

/* It is recorded: for tags of what was done meanwhile. By any thread. */
void file_interaction_ends(struct blkin_span *span, const struct file_totals *totals);

#endif
