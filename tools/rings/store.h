/*
 * Where memories of rings outlive the service that holds them: systemd's store of descriptors where
 * systemd runs the service, else a process of our own (vault.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_STORE_H
#define BLKIN_TOOLS_RINGS_STORE_H

#include "vault.h"

#include <stdint.h>

#define STORE_NAME_MAX 64

struct store {
    struct loop *loop;
    const char *path;               /* of the vault's socket; NULL: no process of our own */
    void (*is_new)(void *context);  /* it is another one: what is held is to be put there again */
    void *context;
    /* its own */
    struct watched vault; /* fd -1: there is none */
    int64_t tried_ms;     /* when one was looked for last */
};

/* When the members above are set: gives what was put there before. */
void store_open(struct store *store, notify_stored_fn *give, void *context);
/* What is in it goes with its process, but not systemd's. */
void store_close(struct store *store);

/* Without a store, memories end with the service. */
bool store_is_there(const struct store *store);

/* Returns false if systemd could not be told now, *is_stored: if it is there now. */
bool store_put(struct store *store, int fd, uint32_t user, uint64_t number, bool *is_stored);
void store_remove(const struct store *store, const char *name);

/* Now and then: a process that is gone is replaced. */
void store_look(struct store *store);

/* The name of a memory there. What is in the memory tells nothing: programs of its user can write
 * there. */
void store_name(uint32_t user, uint64_t number, char name[STORE_NAME_MAX]);
bool store_is_name(const char *name, uint32_t *user, uint64_t *number);

#endif
