/*
 * Memories and the programs that ask for them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holder.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "tools/base/notify.h"
#include "vault.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOLDER_AT_ONCE     64 /* clients, before others of the loop are served */
#define HOLDER_TICK_MS     1000
#define HOLDER_VAULT_MS    10000 /* between two tries to start a vault */
#define HOLDER_CLIENTS_MAX 4096
#define HOLDER_USERS_SHARES                                               \
    16 /* of the clients, no user may have more than one of so many parts \
        */

/*
 * One who was sent a memory, until the message was read. A descriptor in a message counts for its
 * sender: who never reads must not use up what the kernel allows us.
 */
struct holder_client {
    struct holder *holder;
    struct watched watched;
    uint32_t user;
    bool is_gone; /* so it says, but the message is still there */
    struct holder_client *next;
};

struct holder {
    struct loop *loop;
    struct holder_options options;
    struct holder_callbacks callbacks;
    struct unix_socket socket;
    struct watched listener;
    bool is_deaf; /* the listener is not watched until the next tick */
    struct timer tick;
    struct held *memories;
    struct watched vault;   /* fd -1: there is none */
    int64_t vault_tried_ms; /* when one was looked for last */
    struct holder_client *clients;
    unsigned clients_max;
    struct holder_counts counts;
};

/* ---- the memories ---------------------------------------------------------------------------- */

#define HOLDER_NAME_MAX 64

/* In the store. What is in the memory tells nothing: programs of its user can write there. */
static void holder_name(uint32_t user, uint64_t number, char name[HOLDER_NAME_MAX])
{
    (void)snprintf(name, HOLDER_NAME_MAX, "rings-%" PRIu32 "-%" PRIu64, user, number);
}

static bool holder_is_name(const char *name, uint32_t *user, uint64_t *number)
{
    char again[HOLDER_NAME_MAX];

    if (sscanf(name, "rings-%" SCNu32 "-%" SCNu64, user, number) != 2)
        return false;
    holder_name(*user, *number, again);
    return strcmp(name, again) == 0;
}

/* The one that programs of the user get; NULL: there is none. */
static struct held *holder_current(const struct holder *holder, uint32_t user)
{
    struct held *held = holder->memories;

    while (held && (held->user != user || held->is_left))
        held = held->next;
    return held;
}

static void holder_add(struct holder *holder, struct held *held)
{
    held->next = holder->memories;
    holder->memories = held;
    holder->counts.bytes += held->memory.bytes;
    held->since_ms = clock_ms();
}

static void holder_leave(struct held *held)
{
    held->is_left = true;
    held->since_ms = clock_ms();
    memory_set_state(&held->memory, RING_LEFT);
}

static bool holder_has_store(const struct holder *holder)
{
    return notify_has_store() || holder->vault.fd >= 0;
}

static void holder_lose_vault(struct holder *holder)
{
    loop_unwatch(holder->loop, &holder->vault);
    (void)close(holder->vault.fd);
    holder->vault.fd = -1;
    for (struct held *held = holder->memories; held; held = held->next)
        held->is_stored = false;
}

/* Returns false if systemd could not be told now. A vault that is gone is none any more. */
static bool holder_store(struct holder *holder, struct held *held)
{
    char name[HOLDER_NAME_MAX];

    holder_name(held->user, held->number, name);
    if (notify_has_store())
        held->is_stored = notify_store(held->memory.fd, name);
    else
        held->is_stored = vault_put(holder->vault.fd, held->memory.fd, name);
    if (held->is_stored || notify_has_store())
        return held->is_stored;
    holder_lose_vault(holder);
    return true;
}

static void holder_unstore(const struct holder *holder, const char *name)
{
    if (notify_has_store())
        notify_unstore(name);
    else if (holder->vault.fd >= 0)
        vault_remove(holder->vault.fd, name);
}

static void holder_drop(struct holder *holder, struct held *held)
{
    struct held **at = &holder->memories;
    char name[HOLDER_NAME_MAX];

    holder->callbacks.goes(holder->callbacks.context, held);
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    holder->counts.bytes -= held->memory.bytes;
    holder_name(held->user, held->number, name);
    if (held->is_stored)
        holder_unstore(holder, name);
    memory_close(&held->memory);
    free(held);
}

static bool holder_has_room(const struct holder *holder)
{
    const uint64_t bytes = memory_bytes(&holder->options.size);
    unsigned users = 0;

    for (const struct held *held = holder->memories; held; held = held->next)
        users += !held->is_left;
    return users < holder->options.max_users && bytes <= holder->options.max_bytes &&
           holder->counts.bytes <= holder->options.max_bytes - bytes;
}

static struct held *holder_make(struct holder *holder, uint32_t user)
{
    struct held *held = holder_has_room(holder) ? calloc(1, sizeof(*held)) : NULL;
    struct error error;

    if (!held)
        return NULL;
    if (!memory_make(&held->memory, user, &holder->options.size, &error)) {
        free(held);
        return NULL;
    }
    held->user = user;
    held->number = held->memory.made;
    for (const struct held *other = holder->memories; other; other = other->next)
        if (other->user == user && other->number >= held->number)
            held->number = other->number + 1;
    holder_add(holder, held);
    holder->counts.made++;
    holder->callbacks.came(holder->callbacks.context, held);
    return held;
}

/* First it is stored: what a program has, the process after this one must have, too. */
static struct held *holder_memory_for(struct holder *holder, uint32_t user)
{
    struct held *held = holder_current(holder, user);

    if (!held)
        held = holder_make(holder, user);
    if (!held || held->is_stored || !holder_has_store(holder))
        return held;
    return holder_store(holder, held) ? held : NULL;
}

/* ---- those of before ------------------------------------------------------------------------- */

static void holder_take_over(void *context, int fd, const char *name)
{
    struct holder *holder = context;
    struct held *held = calloc(1, sizeof(*held));
    struct error error;

    if (!held || !holder_is_name(name, &held->user, &held->number)) {
        (void)close(fd);
        free(held);
    } else if (!memory_open(&held->memory, fd, &error)) {
        holder->counts.unusable++;
        holder_unstore(holder, name);
        free(held);
    } else {
        held->is_stored = true;
        holder_add(holder, held);
        holder->counts.taken_over++;
    }
}

/* The newest of a user that has the right size is the one to be given; the others are read to
 * their ends. */
static void holder_sort_out(struct holder *holder)
{
    for (struct held *held = holder->memories; held; held = held->next)
        for (struct held *other = holder->memories; other && !held->is_left; other = other->next)
            held->is_left = !memory_is_of_size(&held->memory, &holder->options.size) ||
                            (other->user == held->user && other->number > held->number &&
                             memory_is_of_size(&other->memory, &holder->options.size));
    for (struct held *held = holder->memories; held; held = held->next) {
        memory_set_state(&held->memory, held->is_left ? RING_LEFT : RING_ON);
        holder->callbacks.came(holder->callbacks.context, held);
    }
}

/* ---- the vault ------------------------------------------------------------------------------- */

static void holder_open_vault(struct holder *holder, notify_stored_fn *give)
{
    struct error ignored;

    holder->vault_tried_ms = clock_ms();
    vault_open(&holder->vault.fd, holder->loop, holder->options.vault, give, holder, &ignored);
    if (holder->vault.fd >= 0)
        loop_watch(holder->loop, &holder->vault);
}

/* What we hold is newer. */
static void holder_pass_over(void *context, int fd, const char *name)
{
    (void)context;
    (void)name;
    (void)close(fd);
}

/* Another one, for all memories, as the one before was killed. */
static void holder_replace_vault(struct holder *holder)
{
    holder_open_vault(holder, holder_pass_over);
    for (struct held *held = holder->memories; held && holder->vault.fd >= 0; held = held->next)
        (void)holder_store(holder, held);
}

/* It says nothing while it is there. */
static void holder_vault_is_gone(void *context, short events)
{
    struct holder *holder = context;

    (void)events;
    holder_lose_vault(holder);
    holder_replace_vault(holder);
}

/* ---- clients --------------------------------------------------------------------------------- */

static bool holder_has_unread(const struct holder_client *client)
{
    int bytes = 0;

    return ioctl(client->watched.fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

static void holder_end_client(struct holder_client *client)
{
    struct holder *holder = client->holder;
    struct holder_client **at = &holder->clients;

    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    holder->counts.clients--;
    if (!client->is_gone)
        loop_unwatch(holder->loop, &client->watched);
    (void)close(client->watched.fd);
    free(client);
}

/* It has closed its end, or only says so. */
static void holder_client_ready(void *context, short events)
{
    struct holder_client *client = context;

    (void)events;
    if (!holder_has_unread(client)) {
        holder_end_client(client);
        return;
    }
    loop_unwatch(client->holder->loop, &client->watched);
    client->is_gone = true; /* the tick looks again */
}

static bool holder_may_ask(const struct holder *holder, uint32_t user)
{
    unsigned clients = 0;

    for (const struct holder_client *client = holder->clients; client; client = client->next)
        clients += client->user == user;
    return clients < holder->clients_max / HOLDER_USERS_SHARES &&
           holder->counts.clients < holder->clients_max;
}

static bool holder_send(int fd, const struct memory *memory)
{
    struct ring_hello hello = {.mark = RING_MARK, .bytes = memory->bytes};
    struct iovec bytes = {&hello, sizeof(hello)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    union unix_passed_room room;

    unix_socket_pass(&message, &room, memory->fd);
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(hello);
}

/* Returns false if the program has to ask again. */
static bool holder_serve(struct holder *holder, int fd)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    struct holder_client *client;
    struct held *held;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
        !holder_may_ask(holder, who.uid))
        return false;
    held = holder_memory_for(holder, who.uid);
    client = held ? calloc(1, sizeof(*client)) : NULL;
    if (!client || !holder_send(fd, &held->memory)) {
        free(client);
        return false;
    }
    *client = (struct holder_client){
        .holder = holder,
        .watched = {.fd = fd, .ready = holder_client_ready, .context = client},
        .user = who.uid,
        .next = holder->clients,
    };
    holder->clients = client;
    loop_watch(holder->loop, &client->watched);
    holder->counts.clients++;
    holder->counts.given++;
    return true;
}

static void holder_listen(void *context, short events)
{
    struct holder *holder = context;

    (void)events;
    for (int i = 0; i < HOLDER_AT_ONCE; i++) {
        const int fd = accept4(holder->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
            return;
        if (fd < 0) { /* it would be ready again at once */
            loop_unwatch(holder->loop, &holder->listener);
            holder->is_deaf = true;
            return;
        }
        if (!holder_serve(holder, fd)) {
            holder->counts.refused++;
            (void)close(fd);
        }
    }
}

/* ---- once a second --------------------------------------------------------------------------- */

static void holder_look_at_left(struct holder *holder)
{
    const int64_t now_ms = clock_ms();

    for (struct held *held = holder->memories, *next; held; held = next) {
        const uint64_t written = memory_written(&held->memory);

        next = held->next;
        if (written != held->written)
            held->since_ms = now_ms;
        held->written = written;
        if (held->is_left && now_ms - held->since_ms >= holder->options.left_ms)
            holder_drop(holder, held);
    }
}

static void holder_tick(void *context)
{
    struct holder *holder = context;

    for (struct holder_client *client = holder->clients, *next; client; client = next) {
        next = client->next;
        if (client->is_gone && !holder_has_unread(client))
            holder_end_client(client);
    }
    holder_look_at_left(holder);
    if (!holder_has_store(holder) && holder->options.vault &&
        clock_ms() - holder->vault_tried_ms >= HOLDER_VAULT_MS)
        holder_replace_vault(holder);
    if (holder->is_deaf)
        loop_watch(holder->loop, &holder->listener);
    holder->is_deaf = false;
    timer_set(holder->loop, &holder->tick, HOLDER_TICK_MS);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Half of what the process may have is for clients. */
static unsigned holder_clients_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return HOLDER_USERS_SHARES;
    return limit.rlim_cur / 2 < HOLDER_CLIENTS_MAX ? (unsigned)(limit.rlim_cur / 2)
                                                   : HOLDER_CLIENTS_MAX;
}

/* Without a store, memories end with this process. */
static void holder_open_store(struct holder *holder)
{
    notify_each_stored(holder_take_over, holder);
    holder->vault = (struct watched){-1, POLLIN, holder_vault_is_gone, holder, NULL};
    if (!notify_has_store() && holder->options.vault)
        holder_open_vault(holder, holder_take_over);
}

struct holder *holder_open(struct loop *loop, const struct holder_options *options,
                           const struct holder_callbacks *callbacks, struct error *error)
{
    static const struct unix_socket_kind for_all = {SOCK_SEQPACKET, 0666, SOMAXCONN};
    struct holder *holder = calloc(1, sizeof(*holder));

    if (!holder || !unix_socket_listen(&holder->socket, &for_all, options->path, error)) {
        if (!holder)
            error_set(error, "out of memory");
        free(holder);
        return NULL;
    }
    holder->loop = loop;
    holder->options = *options;
    holder->callbacks = *callbacks;
    holder->clients_max = holder_clients_max();
    holder_open_store(holder);
    holder_sort_out(holder);
    holder->listener = (struct watched){holder->socket.fd, POLLIN, holder_listen, holder, NULL};
    loop_watch(loop, &holder->listener);
    holder->tick = (struct timer){.due = holder_tick, .context = holder};
    timer_set(loop, &holder->tick, HOLDER_TICK_MS);
    return holder;
}

void holder_reload(struct holder *holder, const struct holder_options *options)
{
    holder->options = *options;
    for (struct held *held = holder->memories; held; held = held->next)
        if (!held->is_left && !memory_is_of_size(&held->memory, &options->size))
            holder_leave(held);
}

void holder_close(struct holder *holder)
{
    if (!holder)
        return;
    timer_clear(holder->loop, &holder->tick);
    if (!holder->is_deaf)
        loop_unwatch(holder->loop, &holder->listener);
    for (struct holder_client *client = holder->clients, *next; client; client = next) {
        next = client->next;
        holder_end_client(client);
    }
    for (struct held *held = holder->memories, *next; held; held = next) {
        next = held->next;
        memory_set_state(&held->memory, RING_LEFT);
        held->is_stored &= !notify_has_store(); /* that keeps it, for a restart */
        holder_drop(holder, held);
    }
    unix_socket_close(&holder->socket);
    if (holder->vault.fd >= 0)
        holder_lose_vault(holder);
    free(holder);
}

struct holder_counts holder_counts(const struct holder *holder)
{
    struct holder_counts counts = holder->counts;

    counts.is_stored = holder->vault.fd >= 0 || getenv("FDSTORE");
    for (const struct held *held = holder->memories; held; held = held->next)
        counts.users += !held->is_left;
    return counts;
}

struct held *holder_first(const struct holder *holder)
{
    return holder->memories;
}
