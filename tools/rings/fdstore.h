/*
 * Stores descriptors of rings, so that the rings outlive the service. Under systemd, its descriptor
 * store has them; without systemd, a process of our own (fdserver.h). A process of our own cannot
 * outlive a service of systemd: systemd kills all processes of a service that it stops.
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
    const char *path;              /* of the fdserver's socket; NULL: use systemd only */
    void (*is_new)(void *context); /* the store was replaced and is empty: put all again */
    void *context;
    /* private */
    struct watched fdserver; /* the connection; fd -1: none */
    int64_t tried_ms;        /* last attempt to connect */
};

/* Call it when the public members are set. Calls `give` for each descriptor that was put there
 * before. */
void fdstore_open(struct fdstore *store, notify_stored_fn *give, void *context);
/* The fdserver ends and closes its descriptors; systemd's store stays. */
void fdstore_close(struct fdstore *store);

/* Without a store, memories end with the service. */
bool fdstore_is_there(const struct fdstore *store);
/* True: the rings also outlive an orderly stop. */
bool fdstore_is_systemds(const struct fdstore *store);
/* For the status: "systemd", "process" or "nobody". */
const char *fdstore_keeper(const struct fdstore *store);

/* Returns false if nothing was stored: ask fdstore_is_there(). */
bool fdstore_put(struct fdstore *store, int fd, uint32_t user, uint64_t number);
/* Returns false if systemd is busy: the descriptor is still stored. */
bool fdstore_remove(struct fdstore *store, const char *name);

/* Call it once a second: starts an fdserver if the last one is gone. */
void fdstore_look(struct fdstore *store);

/* A stored memory's name has its user and number. Its contents cannot tell them: the user's
 * programs can overwrite them. */
void fdstore_name(uint32_t user, uint64_t number, char name[FDSTORE_NAME_MAX]);
bool fdstore_is_name(const char *name, uint32_t *user, uint64_t *number);

#endif
