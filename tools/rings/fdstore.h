/*
 * Stores descriptors of rings, so that the rings outlive the service: in systemd's descriptor
 * store, or without systemd in an fdserver (fdserver.h). An fdserver cannot outlive a service of
 * systemd, which kills all processes of a service that it stops.
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
    const char *path;        /* of the fdserver's socket; NULL: use systemd only */
    int answer_ms;           /* how long fdstore_open() waits for each message of the fdserver */
    notify_stored_fn *found; /* gets each stored descriptor, perhaps again after a reconnection */
    void (*on_new_fdserver)(void *context); /* called when another fdserver needs all descriptors */
    void *context;
    /* private */
    struct watched fdserver; /* the connection; fd -1: none */
    int64_t tried_ms;        /* the time of the last attempt to connect */
};

/* The caller has set the public members. Calls `found` for each descriptor stored before. */
void fdstore_open(struct fdstore *store);
/* Disconnects. An fdserver ends when no descriptor is stored; systemd's store stays. */
void fdstore_close(struct fdstore *store);

/* Returns true if there is a store. Without one, memories end with the service. */
bool fdstore_is_there(const struct fdstore *store);
/* Returns true if systemd has the store: then the rings also outlive an orderly restart. */
bool fdstore_is_systemds(const struct fdstore *store);
/* Returns the text for the status: "systemd", "process" or "nobody". */
const char *fdstore_keeper(const struct fdstore *store);

/* Returns false if the descriptor was not stored. */
bool fdstore_put(struct fdstore *store, int fd, uint32_t user, uint64_t number);
/* Returns false if systemd is busy: then the descriptor is still stored. */
bool fdstore_remove(struct fdstore *store, const char *name);

/* If there is no store, connects to an fdserver or starts one, every 10 s at most. The owner calls
 * this function once a second. */
void fdstore_look(struct fdstore *store);

/* Write and read the name of a stored memory: its user and number. The memory itself cannot show
 * them, because the user's programs can overwrite its contents. */
void fdstore_name(uint32_t user, uint64_t number, char name[FDSTORE_NAME_MAX]);
bool fdstore_is_name(const char *name, uint32_t *user, uint64_t *number);

#endif
