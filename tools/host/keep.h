/*
 * Asks the recorder of this host to keep the last seconds, as `blkin keep --last` does, while the
 * loop goes on: nothing here waits.
 *
 * One question is under way at a time; what is asked meanwhile is asked as one after it, and goes
 * back as far as the oldest of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_KEEP_H
#define BLKIN_TOOLS_HOST_KEEP_H

#include "tools/base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

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
    struct sockaddr_un address;
    struct host_keep_counts counts;
    struct host_keep_question now, next; /* under way, and after it */
    struct watched watched;              /* fd -1: not connected */
    struct timer retry, deadline;
    char answer[1024];
    size_t got;
    bool is_away; /* which is said once */
};

/* folder: runtime-dir. One whose path is too long for a socket is as if no recorder ran. */
void host_keep_open(struct host_keep *keep, struct loop *loop, const char *folder);
void host_keep_close(struct host_keep *keep);

/* why: a line of text, which the kept spans tell. */
void host_keep_ask(struct host_keep *keep, int64_t last_ms, const char *why);

#endif
