/*
 * Asking for a memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "asker.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define ASKER_TICK_MS  1000
#define ASKER_FIRST_MS 1000
#define ASKER_WAIT_MS  100 /* in the loop: the holder answers at once, or is away */

struct asker {
    struct loop *loop;
    struct asker_options options;
    struct asker_callbacks callbacks;
    struct timer tick;
    struct memory *memory, *left; /* NULL: there is none */
    int64_t left_ms;              /* since then */
    uint64_t beats;               /* of the memory, when they were looked at last, */
    int64_t beat_ms;              /* and since when they are that number */
};

/* Returns the descriptor, or -1 with error set. */
static int asker_receive(int socket, int timeout_ms, struct error *error)
{
    struct ring_hello hello = {.mark = 0};
    struct pollfd wait = {socket, POLLIN, 0};
    ssize_t got;
    int fd;

    (void)poll(&wait, 1, timeout_ms);
    got = unix_socket_receive(socket, &hello, sizeof(hello), &fd, MSG_DONTWAIT);
    if (fd >= 0 && got == (ssize_t)sizeof(hello) && hello.mark == RING_MARK)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    error_set(error, "the process that listens there gives no rings: it hangs, or is no recorder");
    return -1;
}

static bool asker_map(struct memory *memory, int fd, struct error *error)
{
    if (!memory_open(memory, fd, error))
        return false;
    if (memory_state(memory) == RING_ON)
        return true;
    error_set(error, "the service that gave the rings has ended");
    memory_close(memory);
    return false;
}

static void asker_drop(struct asker *asker, struct memory **memory)
{
    if (!*memory)
        return;
    asker->callbacks.goes(asker->callbacks.context, *memory);
    memory_close(*memory);
    free(*memory);
    *memory = NULL;
}

static void asker_leave(struct asker *asker)
{
    asker_drop(asker, &asker->left);
    asker->left = asker->memory;
    asker->left_ms = clock_ms();
    asker->memory = NULL;
}

/* The one that is there already goes on; another one takes its place. */
static void asker_take(struct asker *asker, struct memory *memory)
{
    asker->beats = memory_beats(memory);
    asker->beat_ms = clock_ms();
    if (asker->memory && memory_is_same(asker->memory, memory)) {
        memory_close(memory);
        free(memory);
        return;
    }
    if (asker->memory)
        asker_leave(asker);
    asker->memory = memory;
    asker->callbacks.came(asker->callbacks.context, memory);
}

static bool asker_ask(struct asker *asker, int timeout_ms, struct error *error)
{
    const int socket = unix_socket_connect(SOCK_SEQPACKET, asker->options.path, error);
    struct memory *memory;
    int fd;

    if (socket < 0)
        return false;
    fd = asker_receive(socket, timeout_ms, error);
    (void)close(socket);
    if (fd < 0)
        return false;
    memory = malloc(sizeof(*memory));
    if (!memory) {
        error_set(error, "out of memory");
        (void)close(fd);
    } else if (asker_map(memory, fd, error)) {
        asker_take(asker, memory);
        return true;
    }
    free(memory);
    return false;
}

/* Its holder may have been killed, and another one may have made another memory. */
static bool asker_is_quiet(struct asker *asker)
{
    const uint64_t beats = memory_beats(asker->memory);

    if (beats != asker->beats) {
        asker->beats = beats;
        asker->beat_ms = clock_ms();
    }
    return (uint64_t)(clock_ms() - asker->beat_ms) * 1000000 > RING_QUIET_NS;
}

static void asker_tick(void *context)
{
    struct asker *asker = context;
    struct error ignored;

    if (asker->left && clock_ms() - asker->left_ms >= asker->options.left_ms)
        asker_drop(asker, &asker->left);
    if (asker->memory && memory_state(asker->memory) == RING_LEFT)
        asker_leave(asker);
    if (!asker->memory || asker_is_quiet(asker))
        (void)asker_ask(asker, ASKER_WAIT_MS, &ignored);
    timer_set(asker->loop, &asker->tick, ASKER_TICK_MS);
}

struct asker *asker_open(struct loop *loop, const struct asker_options *options,
                         const struct asker_callbacks *callbacks, struct error *error)
{
    struct asker *asker = calloc(1, sizeof(*asker));

    if (!asker)
        return error_null(error, "out of memory");
    asker->loop = loop;
    asker->options = *options;
    asker->callbacks = *callbacks;
    asker->tick = (struct timer){.due = asker_tick, .context = asker};
    if (!asker_ask(asker, ASKER_FIRST_MS, error)) {
        free(asker);
        return NULL;
    }
    timer_set(loop, &asker->tick, ASKER_TICK_MS);
    return asker;
}

void asker_close(struct asker *asker)
{
    if (!asker)
        return;
    timer_clear(asker->loop, &asker->tick);
    asker_drop(asker, &asker->left);
    asker_drop(asker, &asker->memory);
    free(asker);
}

const struct memory *asker_memory(const struct asker *asker)
{
    return asker->memory;
}
