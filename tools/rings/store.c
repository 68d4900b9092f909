/*
 * Both kinds of stores.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "store.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STORE_AGAIN_MS 10000 /* between two tries to start a vault */

void store_name(uint32_t user, uint64_t number, char name[STORE_NAME_MAX])
{
    (void)snprintf(name, STORE_NAME_MAX, "rings-%" PRIu32 "-%" PRIu64, user, number);
}

bool store_is_name(const char *name, uint32_t *user, uint64_t *number)
{
    char again[STORE_NAME_MAX];

    if (sscanf(name, "rings-%" SCNu32 "-%" SCNu64, user, number) != 2)
        return false;
    store_name(*user, *number, again);
    return strcmp(name, again) == 0;
}

bool store_is_there(const struct store *store)
{
    return notify_has_store() || store->vault.fd >= 0;
}

/* ---- the vault ------------------------------------------------------------------------------- */

static void store_open_vault(struct store *store, notify_stored_fn *give, void *context)
{
    struct error ignored;

    store->tried_ms = clock_ms();
    vault_open(&store->vault.fd, store->loop, store->path, give, context, &ignored);
    if (store->vault.fd >= 0)
        loop_watch(store->loop, &store->vault);
}

/* What we hold is newer. */
static void store_pass_over(void *context, int fd, const char *name)
{
    (void)context;
    (void)name;
    (void)close(fd);
}

/* Another one, for all memories, as the one before was killed. */
static void store_replace_vault(struct store *store)
{
    store_open_vault(store, store_pass_over, NULL);
    if (store->vault.fd >= 0)
        store->is_new(store->context);
}

static void store_lose_vault(struct store *store)
{
    loop_unwatch(store->loop, &store->vault);
    (void)close(store->vault.fd);
    store->vault.fd = -1;
}

/* It says nothing while it is there. */
static void store_vault_is_gone(void *context, short events)
{
    struct store *store = context;

    (void)events;
    store_lose_vault(store);
    store_replace_vault(store);
}

/* ---- both ------------------------------------------------------------------------------------ */

void store_open(struct store *store, notify_stored_fn *give, void *context)
{
    store->vault = (struct watched){-1, POLLIN, store_vault_is_gone, store, NULL};
    notify_each_stored(give, context);
    if (!notify_has_store() && store->path)
        store_open_vault(store, give, context);
}

void store_close(struct store *store)
{
    if (store->vault.fd >= 0)
        store_lose_vault(store);
}

bool store_put(struct store *store, int fd, uint32_t user, uint64_t number, bool *is_stored)
{
    char name[STORE_NAME_MAX];

    store_name(user, number, name);
    if (notify_has_store()) {
        *is_stored = notify_store(fd, name);
        return *is_stored;
    }
    *is_stored = vault_put(store->vault.fd, fd, name);
    if (!*is_stored)
        store_lose_vault(store);
    return true;
}

void store_remove(const struct store *store, const char *name)
{
    if (notify_has_store())
        notify_unstore(name);
    else if (store->vault.fd >= 0)
        vault_remove(store->vault.fd, name);
}

void store_look(struct store *store)
{
    if (!store_is_there(store) && store->path && clock_ms() - store->tried_ms >= STORE_AGAIN_MS)
        store_replace_vault(store);
}
