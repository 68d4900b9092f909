/*
 * Where memories of rings outlive the service that holds them: systemd's store of descriptors where
 * systemd runs the service, else a process of our own (fdserver.h). systemd kills all processes of
 * a service that it stops, so such a process would not do there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FDSTORE_H
#define BLKIN_TOOLS_RINGS_FDSTORE_H

#include "fdserver.h"

#include <stdint.h>

#define FDSTORE_NAME_MAX 64

struct fdstore {
    struct loop *loop;
    const char *path;              /* of the fdserver's socket; NULL: no process of our own */
    void (*is_new)(void *context); /* it is another one: what is held is to be put there again */
    void *context;
    /* its own */
    struct watched fdserver; /* fd -1: there is none */
    int64_t tried_ms;        /* when one was looked for last */
};

/* When the members above are set: gives what was put there before. */
void fdstore_open(struct fdstore *store, notify_stored_fn *give, void *context);
/* What is in it goes with its process, but not systemd's. */
void fdstore_close(struct fdstore *store);

/* Without a store, memories end with the service. */
bool fdstore_is_there(const struct fdstore *store);
/* systemd's keeps them over a stop in order, too. */
bool fdstore_is_systemds(const struct fdstore *store);
/* For the status: "systemd", "process" or "nobody". */
const char *fdstore_keeper(const struct fdstore *store);

/* Returns false if it is not there now: is there a store still? */
bool fdstore_put(struct fdstore *store, int fd, uint32_t user, uint64_t number);
/* Returns false if it is there still: systemd is busy. */
bool fdstore_remove(struct fdstore *store, const char *name);

/* Now and then: a process that is gone is replaced. */
void fdstore_look(struct fdstore *store);

/* The name of a memory there. What is in the memory tells nothing: programs of its user can write
 * there. */
void fdstore_name(uint32_t user, uint64_t number, char name[FDSTORE_NAME_MAX]);
bool fdstore_is_name(const char *name, uint32_t *user, uint64_t *number);

#endif
