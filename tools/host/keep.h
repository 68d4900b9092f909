/*
 * Asks the recorder of this host to keep the last seconds, as `blkin keep --last` does, in a thread
 * of its own: the loop waits for nothing.
 *
 * One question is under way at a time; what is asked meanwhile is asked as one after it, and goes
 * back as far as the oldest of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_KEEP_H
#define BLKIN_TOOLS_HOST_KEEP_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/thread_job.h"

#include <stdbool.h>
#include <stdint.h>

#define HOST_KEEP_WHY_BYTES 201

struct host_keep_counts {
    uint64_t asked;   /* questions that the recorder has taken */
    uint64_t joined;  /* that went with another one */
    uint64_t unasked; /* no recorder runs, or it has not answered or refused */
};

/* What is to be asked; all after from_ms. */
struct host_keep_question {
    bool is_there;
    int64_t from_ms;
    char why[HOST_KEEP_WHY_BYTES];
};

struct host_keep {
    struct loop *loop;
    char folder[256]; /* runtime-dir */
    struct host_keep_counts counts;
    struct host_keep_question now, next; /* under way, and after it */
    struct thread_job job;               /* asks what is under way, */
    struct error problem;                /* and was told that; "": it was taken */
    bool is_away;                        /* which is said once */
};

/* folder: runtime-dir. */
void host_keep_open(struct host_keep *keep, struct loop *loop, const char *folder);

/* Waits for the answer to what is under way: 5 s at most. */
void host_keep_close(struct host_keep *keep);

/* why: a line of text, which the kept spans tell. */
void host_keep_ask(struct host_keep *keep, int64_t last_ms, const char *why);

#endif
