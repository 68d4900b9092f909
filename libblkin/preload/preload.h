/*
 * libblkin-preload.so: requests of programs that nobody instrumented, seen by their calls of libc.
 *
 * A wrapper looks its descriptor up, calls the real function (real.h), and tells what has happened
 * to message.h (sockets) or file.h (files). This is what the parts share: is anything wanted, the
 * guard against ourselves, which process this is.
 *
 * Each file uses only files that stand before it here:
 *   config    which programs, ports and files are traced; real: the functions of libc
 *   preload   this file
 *   pool      objects without locks
 *   thread    each thread's random numbers, counts and end
 *   connection   the table of descriptors, and connections
 *   interaction  a request with its answer, and what its thread holds; file_sums: its file calls
 *   cause     which request has caused a call
 *   served    the messages of a connection that was accepted
 *   message   of one that was made, and what the wrappers tell of sockets
 *   file      what the wrappers tell of files
 *   server    the first wait for connections, and signals that come in a wait
 *   start     the begin and end of the process
 *   wrap_*    the functions that the program calls
 * A lower file tells an upper one by the functions at the end of this header.
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
#include "libblkin/base/provider.h"
#include "libblkin/process/process.h"
#include "real.h"

#include <errno.h>
#include <time.h>
#include <stdbool.h>
#include <stdint.h>

#define PRELOAD_PUBLIC __attribute__((visibility("default")))

/* A second name: where long has 64 bits, as it has here, pread64 is pread, in glibc too. */
#define PRELOAD_ALIAS(name, function) \
    extern PRELOAD_PUBLIC __typeof__(function) name __attribute__((alias(#function)))

/* ---- the calling thread ---- */

struct preload_thread {
    bool is_inside;        /* the code of this library, or what it calls, runs */
    const void *inside_at; /* the frame that it was entered in */
};

extern __thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));

/*
 * A seccomp filter may end the process at a system call that it does not expect. A filter that was
 * inherited, as in a container, is seen at the start: it allows what the program's own start needs,
 * and this library makes no other calls under it. One that the program installs is seen by the
 * calls that install it, before they do. None of these is ever false again.
 */
extern __attribute__((visibility("hidden"))) bool preload_has_filter; /* of whatever origin */

/* The program is left alone: the wrappers only pass on. */
extern __attribute__((visibility("hidden"))) bool preload_is_filtered;

/*
 * Requests are recorded, and this library makes no system calls. Start of that: start.c. Then
 * connections and files are known only by what the program's own calls have said of them.
 */
extern __attribute__((visibility("hidden"))) bool preload_quiet;

static inline bool preload_is_quiet(void)
{
    return __builtin_expect(__atomic_load_n(&preload_quiet, __ATOMIC_RELAXED), 0);
}

/*
 * A signal handler may leave a call by siglongjmp(3): the end of the call never comes. Is that so
 * for what has begun in a frame, seen from the frame of now? A call or a handler within it has a
 * frame below. Frames: __builtin_frame_address(0), of this thread.
 */
__attribute__((cold)) bool preload_was_left(const void *frame, const void *now);

/* The same of our own code. True: it still runs. False: it was left, and the thread is mended. */
__attribute__((cold)) bool preload_is_still_inside(const void *now);

/* This thread has left our code, and what that has called, at any place. */
__attribute__((cold)) void preload_mend(void);

/* Is this a call of our own, or must none be made? Then a wrapper only passes on. */
static inline bool preload_is_off(void)
{
    return (__builtin_expect(preload_thread.is_inside, 0) &&
            preload_is_still_inside(__builtin_frame_address(0))) ||
           __atomic_load_n(&preload_is_filtered, __ATOMIC_RELAXED);
}

/* Looks for the recorder's rings if it is time. Returns whether spans are wanted. */
__attribute__((cold)) bool preload_finds_rings(void);

/* Are spans wanted? Where the recorder's rings may come, it looks for them once a second. */
static inline bool preload_is_wanted(void)
{
    const int *gate = __atomic_load_n(&blkin_gate_, __ATOMIC_RELAXED);
    const int wanted = __atomic_load_n(gate, __ATOMIC_RELAXED);

    return wanted && (__builtin_expect(wanted != BLKIN_GATE_LOOKS, 1) || preload_finds_rings());
}

/*
 * Is anything to be done, and is this not a call of our own, of LTTng's on our behalf, or of a
 * signal handler in the middle of ours? If not, the wrapper calls the real function (a socket's
 * counts its bytes all the same).
 */
static inline bool preload_is_on(void)
{
    return preload_is_wanted() && !preload_is_off() && preload_config()->is_traced;
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

/* ns of CLOCK_MONOTONIC, as all times of spans. Not blkin_now(): another thread may be about to
 * open libblkin, which sets up the counter that blkin_now() reads. */
static inline uint64_t preload_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- the process ---- */

/* Notes which process this is: at the start, and in a child of fork(2). */
void preload_note_process(void);

/* False in a child of vfork(2), whose descriptors are not those of this memory. A quiet process
 * cannot tell. */
bool preload_is_own_process(void);

/* Forks of this process since the first one: what was at hand then is the parent's. */
extern uint32_t preload_forks;

/* ---- what a lower file tells an upper one ---- */

struct connection;

/* In the child: what was at hand is the parent's. */
void start_after_fork(void);

/* This thread has left the code of this library by siglongjmp(3). */
void interaction_after_jump(void);

/* The calling one; see thread_follow(). */
void start_thread_ends(void);

/* The process ends. Also requests that have caused calls: nobody will answer them. */
void start_end_all(void);

/* Records all that is answered or put off, of all threads: the process ends, or must be quiet. */
void start_flush_all(void);

/* The program installs a seccomp filter: gets all that needs a system call. False: this process
 * cannot be traced without. */
bool start_be_quiet(void);

/* The program calls chroot(2): gets all that needs the agent's socket or /proc. */
void start_leave_files(void);

/* The last descriptor is closed, or was behind our back. */
void message_connection_ends(struct connection *connection);

#endif
