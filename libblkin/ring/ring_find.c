/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_find.h"

#include "libblkin/base/clock.h"
#include "libblkin/base/debug.h"
#include "libblkin/base/thread.h"
#include "ring_ask.h"
#include "ring_early.h"
#include "ring_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* RING_SOON until ring_find_begin() has ended, perhaps in another thread. */
static enum ring_found ring_state = RING_SOON;
static uid_t ring_user; /* the user whose rings this process has */
static bool ring_is_debugged;
static bool ring_has_reported;
static bool ring_is_busy; /* a lock; a thread that does not get it uses the current ring_state */
static char ring_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

static bool ring_enter(void)
{
    return !__atomic_exchange_n(&ring_is_busy, true, __ATOMIC_ACQUIRE);
}

static void ring_leave(void)
{
    __atomic_store_n(&ring_is_busy, false, __ATOMIC_RELEASE);
}

static void ring_set_state(enum ring_found state)
{
    __atomic_store_n(&ring_state, state, __ATOMIC_RELEASE);
}

enum ring_found ring_find_state(void)
{
    return __atomic_load_n(&ring_state, __ATOMIC_ACQUIRE);
}

/* ---- the socket ---- */

static char ring_variable_at_start[sizeof(ring_path) + 1]; /* "": not set */

/* Runs before the program can clear or overwrite its environment, as exim and postgres do. */
__attribute__((constructor)) static void ring_store_variable(void)
{
    const char *chosen = secure_getenv(RING_VARIABLE);

    if (chosen)
        (void)snprintf(ring_variable_at_start, sizeof(ring_variable_at_start), "%s", chosen);
}

/* Sets ring_path. Returns false if no socket is wanted or named, or its folder is missing. */
static bool ring_choose_path(void)
{
    const char *chosen = secure_getenv(RING_VARIABLE);
    const char *kept = *ring_variable_at_start ? ring_variable_at_start : RING_SOCKET;
    const char *path = chosen && *chosen ? chosen : kept;
    const char *name = strrchr(path, '/');
    struct stat status;

    if (strcmp(path, "none") == 0 || !name || strlen(path) >= sizeof(ring_path))
        return false;
    memcpy(ring_path, path, (size_t)(name - path) + 1);
    if (stat(ring_path, &status) != 0)
        return false;
    strcpy(ring_path + (name - path), name); /* NOLINT(clang-analyzer-security*): it fits */
    return true;
}

/* ---- the end of the library ---- */

/* From the C++ ABI. The C library calls the function at exit(3), and at __cxa_finalize(handle). */
int __cxa_atexit(void (*function)(void *), void *argument, void *handle);
void __cxa_finalize(void *handle);

/* Its address is not the handle of a shared object, so dlclose(3) does not call ring_note_exit().
 */
static char ring_exit_handle;
static bool ring_is_exiting;

static void ring_note_exit(void *unused)
{
    (void)unused;
    ring_is_exiting = true;
}

/* Runs after the other destructors of this object, which may still record. At exit(3), does
 * nothing: other threads may be recording. */
__attribute__((destructor(101))) static void ring_end(void)
{
    if (ring_is_exiting)
        return;
    __cxa_finalize(&ring_exit_handle);
    ring_ask_stop();
    ring_early_forget();
    __atomic_store_n(&ring_process.map, NULL, __ATOMIC_RELEASE);
    ring_map_unmap_all();
}

/* ---- the user ---- */

/* Returns the user whose rings the process uses. The user is root if the process can become root
 * again. So a server that acts as its clients' users for a while has one memory. */
static uid_t ring_user_of_process(void)
{
    uid_t real = 0, effective = 0, saved = 0;

    (void)getresuid(&real, &effective, &saved);
    return real == 0 || saved == 0 ? 0 : effective;
}

#define RING_REFRAIN_NS UINT64_C(5000000000)

static uint64_t ring_refrains_since_ns; /* 0: the library may ask */

/*
 * The agent gives the rings of the thread's effective user. So the library does not ask while a
 * server acts as the user of a client, for at most 5 s: some servers never become root again.
 */
static bool ring_may_ask(void)
{
    const uint64_t now_ns = blkin_monotonic_ns();

    if (geteuid() == ring_user) {
        ring_refrains_since_ns = 0;
        return true;
    }
    if (!ring_refrains_since_ns)
        ring_refrains_since_ns = now_ns;
    return now_ns - ring_refrains_since_ns >= RING_REFRAIN_NS;
}

/* ---- the begin of the search ---- */

void ring_find_begin(void)
{
    static bool has_begun;

    if (__atomic_load_n(&has_begun, __ATOMIC_ACQUIRE) || !ring_enter())
        return;
    if (!has_begun) {
        ring_is_debugged = secure_getenv("BLKIN_DEBUG") != NULL;
        if (ring_write_init() && ring_choose_path()) {
            (void)__cxa_atexit(ring_note_exit, NULL, &ring_exit_handle);
            ring_user = ring_user_of_process();
            ring_ask(ring_path);
            ring_set_state(RING_AWAITED);
        } else {
            ring_set_state(RING_NEVER);
        }
        __atomic_store_n(&has_begun, true, __ATOMIC_RELEASE);
    }
    ring_leave();
}

void ring_find_report(void)
{
    if (ring_map())
        blkin_debug_say("libblkin: the agent's rings are used");
    else if (ring_find_state() != RING_NEVER)
        blkin_debug_say("libblkin: no rings so far: no agent has answered at %s", ring_path);
    else if (ring_path[0] == '\0')
        blkin_debug_say(
            "libblkin: no rings: this processor, C library or kernel cannot write them, "
            "or BLKIN_RINGS in the environment is none, or no path");
    else
        blkin_debug_say("libblkin: no rings: there is no folder %s", ring_path);
}

#define RING_WAIT_NS      5000000
#define RING_LAST_WAIT_NS 900000000 /* on a kept connection: the agent has answered before */

void ring_find_wait(bool is_at_start)
{
    const enum ring_found state = ring_find_state();

    if ((state == RING_AWAITED || state == RING_SOON) && ring_enter()) {
        ring_ask_wait(is_at_start ? (int64_t)RING_ASK_NS : RING_WAIT_NS);
        ring_leave();
    }
}

/* ---- the memory ---- */

static void ring_report_unusable(const char *wrong)
{
    if (ring_is_debugged && !ring_has_reported)
        blkin_debug_say("libblkin: the agent's memory is not used: %s", wrong);
    ring_has_reported = true;
}

static void ring_set_map(const struct ring_map *to)
{
    const struct ring_map *from = ring_process.map;

    if (to)
        ring_write_set_identity(to);
    __atomic_store_n(&ring_process.map, to, __ATOMIC_RELEASE);
    if (from && from != to)
        ring_map_leave(from);
}

/* ---- whether an agent reads the memory ---- */

static uint64_t ring_beats;   /* the memory's `beats` when they were last read */
static uint64_t ring_beat_ns; /* the time of their last change */

static void ring_note_beats(const struct ring_map *map)
{
    ring_beats = ring_map_beats(map);
    ring_beat_ns = blkin_monotonic_ns();
}

static bool ring_is_unread(const struct ring_map *map)
{
    if (ring_map_beats(map) != ring_beats)
        ring_note_beats(map);
    return blkin_monotonic_ns() - ring_beat_ns > RING_UNREAD_NS;
}

/* ---- the search ---- */

/* Maps the memory and makes it the current one, unless it is already the current one. */
static void ring_take(int descriptor, uint64_t bytes)
{
    const struct ring_map *now = ring_process.map;
    const char *wrong;
    struct ring_map *map = NULL;

    if (!now || !ring_map_is_on(now) || !ring_map_is_same(now, descriptor)) {
        map = ring_map_new(descriptor, bytes, &wrong);
        if (!map)
            ring_report_unusable(wrong);
    }
    ring_ask_close(descriptor);
    if (map)
        ring_set_map(map);
    if (ring_process.map)
        ring_note_beats(ring_process.map);
}

static bool ring_is_forked;      /* this child has not searched for rings yet */
static bool ring_is_asked_twice; /* the first answer was a memory that the agent had left */

/* Uses the current memory until there is another one, unless the agent has left the current one.
 * Then records wait for the other one, as early records. */
static enum ring_found ring_ask_again(void)
{
    int descriptor;
    uint64_t bytes;

    if (ring_may_ask())
        ring_ask(ring_path);
    /* no agent reads the parent's memory: a child that ends soon needs another one now */
    if (ring_is_forked && ring_process.map && !ring_map_is_on(ring_process.map))
        ring_ask_wait(RING_WAIT_NS);
    ring_is_forked = false;
    switch (ring_ask_receive(&descriptor, &bytes)) {
    case RING_ANSWER_LATER:
        if (ring_process.map && ring_map_is_read(ring_process.map))
            return RING_SOON;
        ring_early_open();
        if (ring_process.map)
            ring_set_map(NULL);
        return RING_SOON;
    case RING_ANSWER:
        ring_take(descriptor, bytes);
        if (!ring_process.map && !ring_is_asked_twice) {
            /* the agent has left the memory since it answered, and has another one */
            ring_is_asked_twice = true;
            ring_ask(ring_path);
            ring_early_open();
            return RING_SOON;
        }
        break;
    case RING_NO_ANSWER:
        break;
    }
    ring_is_asked_twice = false;
    if (ring_process.map && !ring_map_is_read(ring_process.map))
        ring_set_map(NULL);
    ring_early_close(ring_process.map);
    return ring_process.map ? RING_FOUND : RING_AWAITED;
}

/* The search of a quiet process. A memory that the agent has left stays mapped, because munmap(2)
 * is a system call. */
static enum ring_found ring_search_quietly(void)
{
    if (ring_process.map && ring_map_is_read(ring_process.map))
        return RING_FOUND;
    __atomic_store_n(&ring_process.map, NULL, __ATOMIC_RELEASE);
    return RING_NEVER;
}

/* The search waits for an answer only after the first changes of the user, this number of times. A
 * worker process of root changes its user once, at its start. */
#define RING_USERS_AWAITED 2

static unsigned ring_changes; /* number of changes of the user */

static enum ring_found ring_search(void)
{
    const uid_t user = ring_user_of_process();
    const bool is_last = ring_ask_has_kept(); /* after chroot(2), the last chance to ask */

    if (ring_user != user) {
        ring_ask_forget();
        ring_early_leave_user();
        if (ring_process.map)
            ring_set_map(NULL);
        ring_user = user;
        ring_ask(ring_path);
        if (is_last || ++ring_changes <= RING_USERS_AWAITED)
            ring_ask_wait(is_last ? RING_LAST_WAIT_NS : RING_WAIT_NS);
    }
    ring_ask_expire();
    if (ring_process.map && ring_map_is_on(ring_process.map) && !ring_is_unread(ring_process.map)) {
        ring_early_close(ring_process.map);
        return RING_FOUND;
    }
    return ring_ask_again();
}

enum ring_found ring_find(void)
{
    if (ring_find_state() != RING_NEVER && ring_enter()) {
        ring_set_state(blkin_is_quiet ? ring_search_quietly() : ring_search());
        ring_leave();
    }
    return ring_find_state();
}

void ring_find_before_chroot(void)
{
    if (ring_find_state() == RING_NEVER || blkin_is_quiet || !ring_enter())
        return;
    ring_ask(ring_path);
    ring_ask_keep();
    ring_ask_wait(RING_ASK_NS);
    ring_set_state(ring_ask_again());
    ring_leave();
}

bool ring_find_after_chroot(void)
{
    if (!ring_ask_has_kept() || blkin_is_quiet || !ring_enter())
        return false;
    ring_set_state(ring_search());
    ring_leave();
    return true;
}

void ring_find_end(void)
{
    if (ring_enter()) {
        ring_ask_stop();
        ring_leave();
    }
}

void ring_find_after_fork(void)
{
    ring_changes = 0;
    ring_early_forget();
    ring_is_forked = true;
    ring_is_busy = false; /* another thread of the parent may have held this lock */
    ring_write_after_fork();
    ring_ask_stop(); /* the answer belongs to the parent */
}
