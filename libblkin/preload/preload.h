/*
 * libblkin-preload.so: requests of programs that nobody instrumented, seen by their calls of libc.
 *
 * A wrapper looks its descriptor up, calls the real function (real.h), and tells what has happened
 * to interaction.h (sockets) or file.h (files). This is what the parts share: is anything wanted,
 * the guard against ourselves, what the calling thread works for.
 *
 * Every wrapper keeps to this:
 * - errno is what the real function has left, and the real function is called once, with the
 *   program's own arguments;
 * - between preload_enter() and preload_leave() nothing blocks, is a cancellation point or calls
 *   the program's code: not the real call itself, from which a thread may never come back;
 * - what was looked up before the real call is looked up again after it: the descriptor may have
 *   been closed, and be another one, meanwhile.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_H
#define BLKIN_PRELOAD_H

#include "blkin.h"
#include "config.h"
#include "libblkin/process/process.h"
#include "real.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define PRELOAD_PUBLIC __attribute__((visibility("default")))

/* ---- the calling thread ---- */

struct interaction;

struct preload_thread {
    bool is_inside;           /* the code of this library, or what it calls, runs */
    const void *inside_at;    /* the frame that it was entered in */
    struct interaction *work; /* the one that this thread works for, or NULL; referenced */
    struct thread *thread;    /* all else, once there was an interaction: thread.h */
    uint64_t round;           /* of waiting for events of many descriptors; 0: it never has */
    uint32_t unseen_at; /* connections before this one have no unseen request of this thread */
    uint64_t unseen_until_ns; /* when the other ones are stale; 0: not known yet */
};

#define PRELOAD_STALE_NS \
    UINT64_C(10000000000) /* a request that waits so long gets no answer, such as a feed */

extern __thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));

/* A seccomp filter may be there: filter.c. Never false again. */
extern __attribute__((visibility("hidden"))) bool preload_is_filtered;

/* Once, before main(), after the configuration. */
void preload_filter_init(void);

/*
 * A signal handler may leave a call by siglongjmp(3): the end of the call never comes. Is that so
 * for what has begun in a frame, seen from the frame of now? A call or a handler within it has a
 * frame below. Frames: __builtin_frame_address(0), of this thread.
 */
__attribute__((cold)) bool preload_was_left(const void *frame, const void *now);

/* The same of our own code. True: it still runs. False: it was left, and the thread is mended. */
__attribute__((cold)) bool preload_is_still_inside(const void *now);

/* Is this a call of our own, or must none be made? Then a wrapper only passes on. */
static inline bool preload_is_off(void)
{
    return (__builtin_expect(preload_thread.is_inside, 0) &&
            preload_is_still_inside(__builtin_frame_address(0))) ||
           __atomic_load_n(&preload_is_filtered, __ATOMIC_RELAXED);
}

/*
 * Is anything to be done, and is this not a call of our own, of LTTng's on our behalf, or of a
 * signal handler in the middle of ours? If not, the wrapper calls the real function (a socket's
 * counts its bytes all the same).
 */
static inline bool preload_is_on(void)
{
    return blkin_is_on() && !preload_is_off() && preload_config()->is_traced;
}

/* In a child of _Fork(3) or of a bare clone(2), at the first call that it makes. */
__attribute__((cold)) void preload_forked(void);

/* Around all that is done before or after the real call. Returns errno, for preload_leave(). */
static inline int preload_enter(void)
{
    const int saved_errno = errno;

    preload_thread.inside_at = __builtin_frame_address(0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    preload_thread.is_inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!*blkin_process_mark_, 0))
        preload_forked();
    return saved_errno;
}

static inline void preload_leave(int saved_errno)
{
    errno = saved_errno;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    preload_thread.is_inside = false;
}

/* ns of CLOCK_MONOTONIC: the clock of all times that spans are given here. */
static inline uint64_t preload_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- what a call is caused by ---- */

enum preload_cause {
    PRELOAD_NO_CAUSE,      /* no request is known: a trace of its own */
    PRELOAD_BY_PROGRAM,    /* the program's own current span (it uses libblkin) */
    PRELOAD_BY_OWNER,      /* the connection was opened for that request */
    PRELOAD_BY_BEING_ONLY, /* the only one that it can be */
    PRELOAD_BY_PREFIX,     /* the request is sent on: the same first bytes */
    PRELOAD_BY_GUESS,
};

/*
 * Begins a span of what the thread does now for the request that it works for: below it and tagged
 * with "blkin.cause", or, if that is a guess only and guesses are not linked, as a trace of its own
 * with "blkin.guess". Returns how it was found; PRELOAD_NO_CAUSE: no span was begun.
 */
enum preload_cause preload_begin_child(struct blkin_span *span, const char *name, size_t length,
                                       enum blkin_kind kind);

/* How many requests this thread has taken and not answered: what it does may be for all of them. */
unsigned preload_sharers(void);

/* ---- descriptors ---- */

/* What else than a connection's pointer is in a slot. */
enum preload_kind {
    PRELOAD_UNKNOWN,   /* not looked at yet, or closed */
    PRELOAD_NO_SOCKET, /* a file, a pipe, whatever */
    PRELOAD_OTHER,     /* a socket of no interest */
};

/* One per descriptor; made at the first need, never freed, all zeros at first. */
struct preload_slot {
    uintptr_t connection; /* a preload_kind, or a pointer: connection.h */
    uintptr_t file;       /* file.h's own; 0 again once the descriptor is closed or replaced */
    void *file_memory;    /* file.h's own; stays */
};

/* The slot, or NULL if there is none yet. Any number may come. */
struct preload_slot *preload_slot(int fd);

/* The same, made if need be; NULL if there is no memory or fd is no descriptor. */
struct preload_slot *preload_slot_make(int fd);

/* True for one that the wrappers of sockets take; false: file.h may have it. */
static inline bool preload_is_socket(const struct preload_slot *slot)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) > PRELOAD_NO_SOCKET;
}

/* Is there anything to forget when the descriptor is closed? */
static inline bool preload_is_known(const struct preload_slot *slot)
{
    return slot && (__atomic_load_n(&slot->connection, __ATOMIC_RELAXED) |
                    __atomic_load_n(&slot->file, __ATOMIC_RELAXED));
}

/* A new descriptor, of open(2) say: what was known of one of this number is over. In a child of
 * vfork(2), whose descriptors are its own, but whose memory is its parent's: nothing. */
void connection_forget(int fd);

/* ---- the process ---- */

/* False in a child of vfork(2), whose descriptors are not those of this memory. */
bool preload_is_own_process(void);

/* True from listen(2) on until LTTng is loaded. */
extern bool preload_is_new_server;

void preload_begin_server(void);

/* Before LTTng is loaded there: what the address space grows by from now on is not the program's.
 */
void preload_limit_begin(void);

/* Before the calls in which servers wait for connections and requests. */
static inline void preload_before_wait(void)
{
    if (__builtin_expect(preload_is_new_server, 0) && !preload_is_off())
        preload_begin_server();
}

/* ---- the account: one line on stderr at exit if BLKIN_DEBUG is set ---- */

enum preload_count {
    PRELOAD_SERVED,       /* interactions where accepted */
    PRELOAD_CALLED,       /* where connected */
    PRELOAD_FILE_CALLS,   /* spans of file calls */
    PRELOAD_FILE_NOBODYS, /* that were for no request: no span */
    PRELOAD_UNANSWERED,   /* a request whose connection was closed without an answer: no span */
    PRELOAD_UNASKED,      /* messages that no request came before, such as greetings: no span */
    PRELOAD_LATE,         /* writes that came after their interaction was recorded */
    PRELOAD_SHORT,        /* less than min-us: no span */
    PRELOAD_OWNED,        /* causes of client interactions */
    PRELOAD_ONLY,
    PRELOAD_BY_CONTENT,
    PRELOAD_GUESSED,
    PRELOAD_CAUSELESS,
    PRELOAD_KEYLESS,   /* interactions without blkin.join: the offset or the peer is not known */
    PRELOAD_REPLACED,  /* descriptors that were closed behind our back */
    PRELOAD_NO_MEMORY, /* interactions that were not traced for want of memory */
    PRELOAD_COUNTS
};

/* Adds to the thread's count; any thread. */
void preload_count(enum preload_count what);

#endif
