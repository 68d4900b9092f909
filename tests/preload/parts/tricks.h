/*
 * Shared by the tricks: both sides of a connection, and the names of the tricks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_TRICKS_H
#define TESTS_TRICKS_H

#include "preload/wire.h"

#include <sys/types.h>

extern const char *port;
extern char body[BODY_MAX];
extern int listener;

/* No two requests are the same, so that a mix-up is found. */
unsigned next_id(void);

/* Sends both halves of a request, for the client. */
void request(int fd);
void take_answer(int fd);

/* Starts a client process, which makes this number of requests on one connection. */
pid_t start_client(int requests);

void wait_client(pid_t pid);

int taken(void);

/* Serves one request. */
void serve(int fd);

void expect_end(int fd);

/* the tricks that other files call */
void raw_close(void);
void raw_reuse(void);
void dups(void);
void dup_over(void);
void raw_dup_over(void);
void ranges(void);
void passing(void);
void passing_back(void);
void exec_over(void);
void fork_over(void);
void vfork_close(void);
void cancelling(void);
void signalling(void);
void jumping(void);
void abandoning(void);
void waking(void);
void limiting(void);

#endif
