/*
 * Shared by the tricks: both sides of a connection, and the list of the tricks.
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

/* Sends a whole request, for the client. */
void request(int fd);
void take_answer(int fd);

/* Starts a client process, which makes this number of requests on one connection. */
pid_t start_client(int requests);

void wait_client(pid_t pid);

/* Returns the next accepted connection. */
int accept_one(void);

/* Takes a request, whose bytes do not matter. */
void take_request(int fd);

/* Serves one request. */
void serve(int fd);

void expect_end(int fd);

/* TRICK(name) begins a trick, which main() knows by this name. */
#define TRICK(name)                                           \
    static void name(void);                                   \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        trick_add(#name, name);                               \
    }                                                         \
    static void name(void)

void trick_add(const char *name, void (*play)(void));

#endif
