/* SPDX-License-Identifier: BSD-2-Clause */
#include "connection.h"

#include "preload.h"
#include "thread.h"

#include <string.h>
#include <sys/mman.h>

static struct pool connection_pool = {.size = sizeof(struct connection)};

/*
 * Requests that this thread read while tracing was off: the state of connection_any_unseen(). Its
 * address identifies the thread.
 */
static __thread struct {
    uint32_t at;       /* no connection with a lower index has such a request */
    uint64_t until_ns; /* the connection `at` counts until then; 0: not set */
} connection_unseen __attribute__((tls_model("initial-exec")));

/* ---- the table of descriptors ---- */

static struct preload_slot *slot_leaves[PRELOAD_LEAVES];

struct preload_slot *preload_slot(int fd)
{
    struct preload_slot *leaf;

    if (fd < 0 || fd >= PRELOAD_LEAF * PRELOAD_LEAVES)
        return NULL;
    leaf = __atomic_load_n(&slot_leaves[fd / PRELOAD_LEAF], __ATOMIC_ACQUIRE);
    return leaf ? &leaf[fd % PRELOAD_LEAF] : NULL;
}

struct preload_slot *preload_slot_make(int fd)
{
    struct preload_slot *slot = preload_slot(fd), *leaf, *there = NULL;

    if (slot || fd < 0 || fd >= PRELOAD_LEAF * PRELOAD_LEAVES || preload_is_quiet())
        return slot;
    leaf = mmap(NULL, PRELOAD_LEAF * sizeof(*leaf), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (leaf == MAP_FAILED)
        return NULL;
    if (!__atomic_compare_exchange_n(&slot_leaves[fd / PRELOAD_LEAF], &there, leaf, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        (void)munmap(leaf, PRELOAD_LEAF * sizeof(*leaf));
    return preload_slot(fd);
}

/* ---- references ---- */

static inline bool slot_word_is_connection(uintptr_t word)
{
    return word > PRELOAD_OTHER;
}

struct connection *connection_of(const struct preload_slot *slot, uint32_t generation)
{
    const uintptr_t word = slot ? __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) : 0;
    struct connection *connection = (struct connection *)word;

    if (!slot_word_is_connection(word) ||
        !pool_try_ref(&connection->item,
                      generation ? generation : pool_generation(&connection->item)))
        return NULL;
    if (__atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == word)
        return connection;
    connection_release(connection); /* the descriptor was closed in the meantime */
    return NULL;
}

void connection_release(struct connection *connection)
{
    if (pool_release(&connection->item))
        pool_give(&connection_pool, connection);
}

/* ---- descriptors that are opened and closed ---- */

/*
 * Puts a word into the slot: a connection, whose reference the slot takes over, or a preload_kind.
 */
static void connection_set_slot(struct preload_slot *slot, uintptr_t word)
{
    const uintptr_t before = __atomic_exchange_n(&slot->connection, word, __ATOMIC_ACQ_REL);
    struct connection *connection = (struct connection *)before;

    __atomic_store_n(&slot->file, 0, __ATOMIC_RELAXED);
    if (!slot_word_is_connection(before))
        return;
    if (__atomic_sub_fetch(&connection->slots, 1, __ATOMIC_ACQ_REL) == 0)
        message_end_connection(connection);
    connection_release(connection);
}

static struct connection *connection_take(int fd, enum role role)
{
    struct preload_slot *slot = preload_slot_make(fd);
    struct connection *connection = slot ? pool_take(&connection_pool) : NULL;

    if (!connection) {
        if (slot)
            connection_set_slot(slot, PRELOAD_UNKNOWN);
        return NULL;
    }
    __atomic_store_n(&connection->direction, (uint8_t)DIRECTION_NONE, __ATOMIC_RELAXED);
    __atomic_store_n(&connection->reader, 0, __ATOMIC_RELAXED);
    memset(&connection->role, 0, sizeof(*connection) - offsetof(struct connection, role));
    connection->role = (uint8_t)role;
    connection->slots = 1;
    connection->forks = preload_forks;
    pool_publish(&connection->item);
    connection_set_slot(slot, (uintptr_t)connection);
    return connection;
}

bool connection_connecting(int fd, const struct sockaddr *address, socklen_t length)
{
    const int saved_errno = errno;
    struct preload_slot *slot = preload_slot(fd);
    struct connection *connection = connection_of(slot, 0);
    bool is_new = false;

    /* the program calls connect(2) again to get the result of a non-blocking one */
    if (connection && connection->role == ROLE_CLIENT && connection->is_fresh) {
        connection_release(connection);
        errno = saved_errno;
        return false;
    }
    if (connection)
        connection_release(connection);
    if (connection_is_stream(fd)) {
        if (connection_can_be_traced(address, length)) {
            connection = connection_take(fd, ROLE_CLIENT);
            is_new = connection != NULL;
        } else if ((slot = preload_slot_make(fd))) {
            connection_set_slot(slot, PRELOAD_OTHER);
        }
    }
    if (is_new) {
        connection->may_have_key = connection->is_fresh = true;
        if (preload_is_quiet())
            connection_fill_quietly(connection, -1, address, length);
        else if (address->sa_family == AF_UNIX)
            connection_fill_unix(connection, (const void *)address, length);
    }
    errno = saved_errno;
    return is_new;
}

void connection_accepted(int fd, int listener, const struct sockaddr *address, socklen_t length)
{
    const int saved_errno = errno;
    struct connection *connection = connection_take(fd, ROLE_SERVER);

    if (connection) {
        connection->may_have_key = true;
        if (preload_is_quiet())
            connection_fill_quietly(connection, listener, address, length);
    }
    errno = saved_errno;
}

void connection_forget(int fd)
{
    struct preload_slot *slot = preload_slot(fd);

    if (preload_is_known(slot) && preload_is_own_process())
        connection_set_slot(slot, PRELOAD_UNKNOWN);
}

void connection_forget_new(int fd)
{
    if (fd >= 0 && !preload_is_off())
        PRELOAD_INSIDE(connection_forget(fd));
}

void connection_set_no_stream(int fd)
{
    struct preload_slot *slot = preload_slot(fd);

    if (slot)
        connection_set_slot(slot, PRELOAD_OTHER);
}

void connection_shared(int fd)
{
    struct connection *connection = connection_of(preload_slot(fd), 0);

    if (!connection)
        return;
    connection->may_have_key = false;
    connection->key = 0;
    connection->location = 0;
    connection_release(connection);
}

void connection_forget_range(unsigned first, unsigned last)
{
    for (uint64_t fd = first; fd <= last && fd < (uint64_t)PRELOAD_LEAF * PRELOAD_LEAVES; fd++) {
        if (preload_slot((int)fd))
            connection_forget((int)fd);
        else
            fd |= PRELOAD_LEAF - 1; /* skips a leaf that does not exist */
    }
}

void connection_duplicated(int from, int to)
{
    struct connection *connection = connection_of(preload_slot(from), 0);
    struct preload_slot *slot;

    if (!connection) {
        connection_forget(to);
        return;
    }
    slot = preload_slot_make(to);
    if (!slot) {
        connection_release(connection);
        return;
    }
    (void)__atomic_add_fetch(&connection->slots, 1, __ATOMIC_ACQ_REL);
    connection_set_slot(slot, (uintptr_t)connection);
}

/* ---- use ---- */

/* A socket that cannot be traced becomes PRELOAD_OTHER, so that it is not examined again. */
void connection_adopt(int fd)
{
    const int saved_errno = errno;
    struct preload_slot *slot;
    struct connection *connection;
    int listens = 0;
    socklen_t length = sizeof(listens);

    if (!(slot = preload_slot_make(fd)))
        return;
    if (preload_is_quiet() || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0) {
        __atomic_store_n(&slot->connection, PRELOAD_NO_SOCKET, __ATOMIC_RELAXED);
    } else if (listens || !(connection = connection_take(fd, ROLE_NONE)) ||
               !connection_prepare(connection, fd) || connection->role == ROLE_NONE) {
        connection_set_slot(slot, PRELOAD_OTHER);
    }
    errno = saved_errno;
}

/* UNIX sockets have no port. The library traces such sockets if the configuration names no ports.
 */
static void connection_decide_traced(struct connection *connection,
                                     const struct preload_config *config)
{
    connection->is_traced =
        connection->role != ROLE_NONE &&
        (connection->is_unix ? config->range_count == 0
                             : preload_config_has_port(config, connection_server_port(connection)));
    connection->checked_by = config->generation;
}

/* Called when the descriptor was closed without a wrapper. Examines it again. */
static void connection_replace(int fd, const struct connection *connection)
{
    struct preload_slot *slot = preload_slot(fd);

    if (slot && __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == (uintptr_t)connection)
        connection_set_slot(slot, PRELOAD_UNKNOWN);
    connection_adopt(fd);
    preload_count(PRELOAD_REPLACED);
}

bool connection_is_traced(struct connection *connection, int fd)
{
    const struct preload_config *config = preload_config();
    const uint64_t cookie = connection_cookie_of(fd);

    if (connection->cookie && cookie != connection->cookie && !preload_is_quiet()) {
        connection_replace(fd, connection);
        return false;
    }
    connection->cookie = cookie;
    if (!__atomic_load_n(&connection->is_prepared, __ATOMIC_ACQUIRE) &&
        !connection_prepare(connection, fd))
        return false;
    if (connection->checked_by != config->generation)
        connection_decide_traced(connection, config);
    return connection->is_traced;
}

/* ---- requests that arrived while tracing was off ---- */

void connection_read_unseen(struct connection *connection)
{
    __atomic_store_n(&connection->reader, (uintptr_t)&connection_unseen, __ATOMIC_RELAXED);
    __atomic_store_n(&connection->direction, (uint8_t)DIRECTION_UNSEEN, __ATOMIC_RELEASE);
    if (connection->item.index < connection_unseen.at)
        connection_unseen.at = connection->item.index;
    connection_unseen.until_ns = 0;
}

static bool connection_is_own_unseen(const struct connection *connection)
{
    return __atomic_load_n(&connection->direction, __ATOMIC_ACQUIRE) == DIRECTION_UNSEEN &&
           __atomic_load_n(&connection->reader, __ATOMIC_RELAXED) == (uintptr_t)&connection_unseen;
}

/* The first test is cheap, and rejects most connections without a reference. */
static bool connection_has_unseen(struct connection *connection)
{
    bool has_unseen;

    if (!connection_is_own_unseen(connection) ||
        !pool_try_ref(&connection->item, pool_generation(&connection->item)))
        return false;
    has_unseen = connection_is_own_unseen(connection) && connection->role == ROLE_SERVER;
    connection_release(connection);
    return has_unseen;
}

bool connection_any_unseen(void)
{
    struct connection *connection;
    uint64_t now_ns;

    while ((connection = pool_at(&connection_pool, connection_unseen.at)) &&
           !connection_has_unseen(connection))
        connection_unseen.at++;
    if (!connection)
        return false;
    now_ns = blkin_now();
    if (!connection_unseen.until_ns)
        connection_unseen.until_ns = now_ns + PRELOAD_STALE_NS;
    return now_ns < connection_unseen.until_ns;
}

/* ---- a process that is about to be quiet ---- */

#define QUIET_EXAMINED 1024 /* number of descriptors, from 0 on */

static void connection_examine_before_quiet(int fd)
{
    struct connection *connection;

    if (!connection_note_listener(fd))
        return;
    if (!preload_is_known(preload_slot(fd)))
        connection_adopt(fd);
    connection = connection_of(preload_slot(fd), 0);
    if (!connection)
        return;
    if (connection_is_traced(connection, fd))
        (void)connection_key(connection, fd);
    connection_release(connection);
}

void connection_reserve(void)
{
    pool_reserve(&connection_pool);
    (void)preload_slot_make(0);
    (void)connection_is_ephemeral(0);
    connection_prepare_keys();
    for (int fd = 0; fd < QUIET_EXAMINED; fd++)
        connection_examine_before_quiet(fd);
}
