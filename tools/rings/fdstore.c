/* SPDX-License-Identifier: BSD-2-Clause */
#include "fdstore.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FDSTORE_AGAIN_MS  10000 /* between two attempts to start an fdserver */
#define FDSTORE_ANSWER_MS 2000  /* of a later attempt: short, as the loop stands still meanwhile */

void fdstore_name(uint32_t user, uint64_t number, char name[FDSTORE_NAME_MAX])
{
    (void)snprintf(name, FDSTORE_NAME_MAX, "rings-%" PRIu32 "-%" PRIu64, user, number);
}

bool fdstore_is_name(const char *name, uint32_t *user, uint64_t *number)
{
    char again[FDSTORE_NAME_MAX];

    if (sscanf(name, "rings-%" SCNu32 "-%" SCNu64, user, number) != 2)
        return false;
    fdstore_name(*user, *number, again);
    return strcmp(name, again) == 0;
}

bool fdstore_is_there(const struct fdstore *store)
{
    return store->fdserver.fd >= 0 || notify_has_store();
}

bool fdstore_is_systemds(const struct fdstore *store)
{
    return store->fdserver.fd < 0 && notify_has_store();
}

const char *fdstore_keeper(const struct fdstore *store)
{
    return store->fdserver.fd >= 0 ? "process" : notify_has_store() ? "systemd" : "nobody";
}

/* ---- the fdserver ---------------------------------------------------------------------------- */

static void fdstore_open_process(struct fdstore *store)
{
    const char *dead = getenv("NOTIFY_SOCKET");
    const bool is_first = store->tried_ms == 0;
    struct error error;

    store->tried_ms = clock_ms();
    if (dead && is_first)
        say(BK1070, "nobody listens at NOTIFY_SOCKET (%s): a child process keeps the rings", dead);
    fdserver_open(&store->fdserver.fd, store->loop, store->path,
                  is_first ? store->answer_ms : FDSTORE_ANSWER_MS, store->found, store->context,
                  &error);
    if (store->fdserver.fd >= 0)
        loop_watch(store->loop, &store->fdserver);
    else if (is_first)
        say(BK1071, "the rings are lost if this service is killed: %s; the service tries again",
            error.text);
}

/* Starts a new fdserver after the last one was killed, or connects to one that did not answer. */
static void fdstore_replace_process(struct fdstore *store)
{
    fdstore_open_process(store);
    if (store->fdserver.fd >= 0)
        store->on_new_fdserver(store->context);
}

static void fdstore_lose_process(struct fdstore *store)
{
    loop_unwatch(store->loop, &store->fdserver);
    (void)close(store->fdserver.fd);
    store->fdserver.fd = -1;
}

/* An fdserver sends nothing while it runs, so any event means that it is gone. */
static void fdstore_on_process_end(void *context)
{
    struct fdstore *store = context;

    fdstore_lose_process(store);
    fdstore_replace_process(store);
}

/* ---- the store ------------------------------------------------------------------------------- */

void fdstore_open(struct fdstore *store)
{
    store->fdserver = (struct watched){-1, POLLIN, fdstore_on_process_end, store, NULL, 0};
    notify_each_stored(store->found, store->context);
    if (!notify_has_store() && store->path)
        fdstore_open_process(store);
}

void fdstore_close(struct fdstore *store)
{
    if (store->fdserver.fd >= 0)
        fdstore_lose_process(store);
}

bool fdstore_put(struct fdstore *store, int fd, uint32_t user, uint64_t number)
{
    char name[FDSTORE_NAME_MAX];

    fdstore_name(user, number, name);
    if (store->fdserver.fd < 0)
        return notify_store(fd, name);
    if (fdserver_put(store->fdserver.fd, fd, name))
        return true;
    fdstore_lose_process(store);
    return false;
}

bool fdstore_remove(struct fdstore *store, const char *name)
{
    if (store->fdserver.fd < 0)
        return notify_unstore(name);
    if (!fdserver_remove(store->fdserver.fd, name))
        fdstore_lose_process(store);
    return true;
}

void fdstore_look(struct fdstore *store)
{
    if (!fdstore_is_there(store) && store->path && clock_ms() - store->tried_ms >= FDSTORE_AGAIN_MS)
        fdstore_replace_process(store);
}
