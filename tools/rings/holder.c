/* SPDX-License-Identifier: BSD-2-Clause */
#include "holder_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "shares.h"
#include "users.h"

#include <stdlib.h>
#include <unistd.h>

#define HOLDER_TICK_MS    1000
#define HOLDER_OFTEN_MS   100
#define HOLDER_GROW_MS    60000
#define HOLDER_STEP_BYTES RING_HUGE /* filled in one step, which takes some ms */

/* ---- the memories ---------------------------------------------------------------------------- */

static void holder_add(struct holder *holder, struct held *held)
{
    held->next = holder->memories;
    holder->memories = held;
    holder->counts.bytes += held->memory.bytes;
    held_begin(held);
}

static void holder_forget(struct holder *holder, struct held *held)
{
    struct held **at = &holder->memories;

    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    holder->counts.bytes -= held->memory.bytes;
    memory_close(&held->memory);
    free(held->rings_looked_at);
    free(held);
}

/* Leaves the memory, and drops it. Returns false if the store cannot remove the memory now. */
static bool holder_drop(struct holder *holder, struct held *held)
{
    char name[FDSTORE_NAME_MAX];

    fdstore_name(held->user, held->number, name);
    memory_set_state(&held->memory, RING_LEFT); /* tells programs to ask again */
    held->is_left = true;
    if (held->is_stored && !fdstore_remove(&holder->store, name))
        return false;
    holder->callbacks.removing(holder->callbacks.context, held);
    holder_forget(holder, held);
    return true;
}

/* Returns the bytes that lack for the new memory. reserve: bytes that must stay free beside it. */
static uint64_t holder_lacks(const struct holder *holder, const struct memory_size *size,
                             uint64_t reserve)
{
    uint64_t bytes = holder->counts.bytes + memory_bytes(size) + reserve;

    for (const struct held *held = holder->making; held; held = held->next)
        bytes += held->memory.bytes;
    return bytes > holder->options.max_bytes ? bytes - holder->options.max_bytes : 0;
}

/* The last resort: drops replaced memories that programs have, but have not written to for left_ms.
 * Programs that cannot ask again are not recorded from then on. Returns true if there is room. */
static bool holder_drop_replaced(struct holder *holder, const struct memory_size *size,
                                 uint64_t reserve)
{
    uint64_t lacks, most;
    struct held *oldest;

    while ((lacks = holder_lacks(holder, size, reserve)) != 0) {
        oldest =
            held_oldest_replaced(holder->memories, clock_ms() - holder->options.left_ms, &most);
        if (lacks > most || !holder_drop(holder, oldest))
            return false;
    }
    return true;
}

/* Makes room for a new user: drops unused memories early. */
static bool holder_make_room(struct holder *holder, const struct memory_size *size)
{
    struct held *idle;

    while (holder_lacks(holder, size, 0) ||
           held_users(holder->memories) >= holder->options.max_users) {
        idle = memory_bytes(size) > holder->options.max_bytes ? NULL
                                                              : held_longest_idle(holder->memories);
        if (!idle || !holder_drop(holder, idle))
            break;
    }
    return held_users(holder->memories) < holder->options.max_users &&
           holder_drop_replaced(holder, size, 0);
}

static struct held *holder_begin_one(struct holder *holder, uint32_t user,
                                     const struct memory_size *size)
{
    struct held *held = calloc(1, sizeof(*held));
    struct error error;

    if (!held)
        return NULL;
    if (!memory_begin(&held->memory, user, size, &error)) {
        free(held);
        return NULL;
    }
    held->user = user;
    held->next = holder->making;
    holder->making = held;
    return held;
}

/* Programs ask for the new memory when they see that the old one is left. */
static void holder_finish_one(struct holder *holder, struct held *held)
{
    struct held *before = held_find(holder->memories, held->user);

    holder->making = held->next;
    held->number = held->memory.created_ns;
    if (before) {
        if (before->number >= held->number)
            held->number = before->number + 1;
        held_leave(before, RING_REPLACED);
    }
    holder_add(holder, held);
    held->is_known = true;
    holder->counts.made++;
    holder->callbacks.added(holder->callbacks.context, held);
}

/* Fills `bytes` more bytes of the first memory in `making`. Returns the memory if the memory is
 * full; NULL: not full yet, or failed. */
static struct held *holder_fill_one(struct holder *holder, uint64_t bytes)
{
    struct held *held = holder->making;
    struct error error;

    if (!memory_fill(&held->memory, bytes, &error)) {
        holder->making = held->next;
        holder->grow_ms = clock_ms() + HOLDER_GROW_MS;
        free(held);
        return NULL;
    }
    if (!memory_is_full(&held->memory))
        return NULL;
    holder_finish_one(holder, held);
    return held;
}

static void holder_drop_making(struct holder *holder)
{
    for (struct held *held = holder->making, *next; held; held = next) {
        next = held->next;
        memory_close(&held->memory);
        free(held);
    }
    holder->making = NULL;
    timer_clear(holder->loop, &holder->make);
}

static void holder_make_more(void *context)
{
    struct holder *holder = context;

    if (holder->making)
        (void)holder_fill_one(holder, HOLDER_STEP_BYTES);
    if (holder->making)
        timer_set(holder->loop, &holder->make, 0);
}

/* Begins to replace a memory. A larger successor must leave the reserve for new users. A smaller
 * one is halved until there is room. Returns false if there is no room even then. */
static bool holder_replace(struct holder *holder, const struct held *held, struct memory_size size)
{
    const bool is_larger = memory_bytes(&size) > held->memory.bytes;
    const uint64_t first = shares_first_size(&size).event_bytes;

    while (!is_larger && size.event_bytes > first && holder_lacks(holder, &size, 0))
        size.event_bytes /= 2;
    if (!holder_drop_replaced(holder, &size, is_larger ? shares_reserve(&holder->options) : 0))
        return is_larger;
    (void)holder_begin_one(holder, held->user, &size);
    return true;
}

/*
 * Replaces memories whose size differs from their share. If there is no room for successors, leaves
 * one memory per call, the memory that has been idle for longest.
 */
static void holder_resize_by(struct holder *holder, const struct shares *shares)
{
    struct held *extra = NULL;

    for (struct held *held = holder->memories; held; held = held->next) {
        const struct memory_size size = shares_size(shares, held, &holder->options);

        if (held->is_left || memory_is_of_size(&held->memory, &size) ||
            held_find(holder->making, held->user) ||
            (size.event_bytes && holder_replace(holder, held, size)))
            continue;
        if (!extra || held->since_ms < extra->since_ms)
            extra = held;
    }
    if (extra)
        held_leave(extra, RING_LEFT);
}

static void holder_resize(struct holder *holder)
{
    struct shares shares;

    if (clock_ms() < holder->grow_ms || !shares_divide(&shares, holder->memories, &holder->options))
        return;
    holder_resize_by(holder, &shares);
    shares_free(&shares);
    if (holder->making)
        timer_set(holder->loop, &holder->make, 0);
}

static bool holder_has_share(struct holder *holder, uint32_t user, const struct memory_size *size)
{
    struct shares shares;
    bool has_share;

    if (!shares_divide(&shares, holder->memories, &holder->options))
        return false;
    has_share = shares_allow(&shares, users_owner(user), memory_bytes(size), &holder->options);
    shares_free(&shares);
    return has_share;
}

/* Makes a small memory at once, while a program waits. */
static struct held *holder_make(struct holder *holder, uint32_t user)
{
    const struct memory_size first = shares_first_size(&holder->options.size);
    struct held *held = NULL;

    if (holder_has_share(holder, user, &first) && holder_make_room(holder, &first))
        held = holder_begin_one(holder, user, &first);
    return held ? holder_fill_one(holder, held->memory.bytes) : NULL;
}

static void holder_store(struct holder *holder, struct held *held)
{
    held->is_stored = fdstore_put(&holder->store, held->memory.fd, held->user, held->number);
}

struct held *holder_memory_for(struct holder *holder, uint32_t user)
{
    struct held *held = held_find(holder->memories, user);

    if (!held)
        held = holder_make(holder, user);
    if (held && !held->is_stored)
        holder_store(holder, held);
    return held && (held->is_stored || !fdstore_is_there(&holder->store)) ? held : NULL;
}

/* ---- memories of the previous process -------------------------------------------------------- */

static void holder_take_over(void *context, int fd, const char *name)
{
    struct holder *holder = context;
    struct held *held = calloc(1, sizeof(*held));
    struct error error;

    if (!held || !fdstore_is_name(name, &held->user, &held->number) ||
        held_has(holder->memories, held->user, held->number)) {
        (void)close(fd);
        free(held);
    } else if (!memory_open(&held->memory, fd, &error)) {
        holder->counts.unusable++;
        (void)fdstore_remove(&holder->store, name);
        free(held);
    } else {
        held->is_stored = true;
        /* programs may have overwritten the head; numbers of version 0.9 are times since 1970 */
        if (held->number < (uint64_t)clock_ns())
            held->memory.created_ns = held->number;
        holder_add(holder, held);
        holder->counts.taken_over++;
    }
}

/* Begins to use the memories that were taken over. */
static void holder_use_taken_over(struct holder *holder)
{
    held_leave_older(holder->memories);
    for (struct held *held = holder->memories; held; held = held->next) {
        if (held->is_known)
            continue;
        held->is_known = true;
        memory_set_state(&held->memory, held->is_left ? RING_REPLACED : RING_ON);
        holder->callbacks.added(holder->callbacks.context, held);
    }
}

/* Puts all memories into another store, which may have memories of the previous process. */
static void holder_store_all(void *context)
{
    struct holder *holder = context;

    for (struct held *held = holder->memories; held; held = held->next)
        holder_store(holder, held);
    holder_use_taken_over(holder);
}

/* ---- once a second --------------------------------------------------------------------------- */

static void holder_look_at_memories(struct holder *holder)
{
    const struct holder_options *options = &holder->options;
    const int64_t now_ms = clock_ms();
    int64_t used_ms;

    for (struct held *held = holder->memories, *next; held; held = next) {
        next = held->next;
        held_look(held, options->hold_ms);
        memory_beat(&held->memory);
        /* a program that has a replaced memory may be unable to ask again, and write later */
        used_ms = held->is_left && !held_is_replaced(held) ? held->since_ms : held->used_ms;
        if (now_ms - held->since_ms >= options->left_ms &&
            now_ms - used_ms >= (held->is_left ? options->left_ms : options->idle_ms))
            (void)holder_drop(holder, held);
    }
}

static void holder_tick(void *context)
{
    struct holder *holder = context;

    holder_clients_look(holder);
    holder_look_at_memories(holder);
    holder_resize(holder);
    fdstore_look(&holder->store);
    timer_set(holder->loop, &holder->tick, HOLDER_TICK_MS);
}

/* ---- ten times a second ---------------------------------------------------------------------- */

static void holder_look_often(void *context)
{
    struct holder *holder = context;

    held_refresh_rules(holder->memories, &holder->rules_known);
    if (held_find_busy(holder->memories, holder->options.size.event_bytes))
        holder_resize(holder);
    timer_set(holder->loop, &holder->often, HOLDER_OFTEN_MS);
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct holder *holder_open(struct loop *loop, const struct holder_options *options,
                           const struct holder_callbacks *callbacks, struct error *error)
{
    static const struct unix_socket_kind socket_of_all_users = {SOCK_SEQPACKET, 0666, SOMAXCONN};
    struct holder *holder = calloc(1, sizeof(*holder));

    if (!holder ||
        !unix_socket_listen(&holder->socket, &socket_of_all_users, options->path, error)) {
        if (!holder)
            error_set(error, "out of memory");
        free(holder);
        return NULL;
    }
    (void)unix_socket_name_senders(holder->socket.fd);
    holder->loop = loop;
    holder->options = *options;
    holder->callbacks = *callbacks;
    holder_clients_begin(holder);
    holder->unknown_user = users_unknown();
    holder->store = (struct fdstore){.loop = loop,
                                     .path = options->fdserver,
                                     .answer_ms = options->answer_ms,
                                     .found = holder_take_over,
                                     .on_new_fdserver = holder_store_all,
                                     .context = holder};
    holder->often = (struct timer){.due = holder_look_often, .context = holder};
    holder_look_often(holder);
    fdstore_open(&holder->store);
    holder_use_taken_over(holder);
    holder_clients_accept(holder);
    holder->make = (struct timer){.due = holder_make_more, .context = holder};
    holder->tick = (struct timer){.due = holder_tick, .context = holder};
    timer_set(loop, &holder->tick, HOLDER_TICK_MS);
    return holder;
}

void holder_reload(struct holder *holder, const struct holder_options *options)
{
    holder->options = *options;
    holder_drop_making(holder);
    holder->grow_ms = 0;
    holder_resize(holder);
}

void holder_close(struct holder *holder)
{
    if (!holder)
        return;
    timer_clear(holder->loop, &holder->tick);
    timer_clear(holder->loop, &holder->often);
    holder_drop_making(holder);
    holder_clients_end(holder);
    for (struct held *held = holder->memories, *next; held; held = next) {
        next = held->next;
        /* then holder_drop() does not remove the memory from systemd's store */
        held->is_stored &= !fdstore_is_systemds(&holder->store);
        (void)holder_drop(holder, held);
    }
    unix_socket_close(&holder->socket);
    fdstore_close(&holder->store);
    free(holder);
}

struct holder_counts holder_counts(const struct holder *holder)
{
    struct holder_counts counts = holder->counts;

    counts.clients = (unsigned)holder->clients.count;
    counts.keeper = fdstore_keeper(&holder->store);
    counts.may_be_stored = fdstore_is_systemds(&holder->store);
    counts.is_stored = holder->store.fdserver.fd >= 0 ||
                       (counts.may_be_stored && (getenv("FDSTORE") || counts.taken_over > 0));
    counts.users = held_users(holder->memories);
    return counts;
}

struct held *holder_first(const struct holder *holder)
{
    return holder->memories;
}
