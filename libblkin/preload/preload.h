/*
 * libblkin-preload.so: requests of programs that nobody instrumented, seen by their calls of libc.
 *
 * A wrapper looks its descriptor up, calls the real function (real.h), and tells what has happened
 * to message.h (sockets) or file.h (files). This is what the parts share: is anything wanted, the
 * guard against ourselves, which process this is.
 *
 * Each file uses only files that stand before it here:
 *   - config: the configuration; real: the functions of libc
 *   - preload: this file
 *   - pool: objects without locks
 *   - thread: each thread's counts and end
 *   - connection: the table of descriptors, and connections
 *   - interaction: a request with its answer, and its thread's; file_sums: its file calls
 *   - cause: the request that has caused a call
 *   - served: messages on an accepted connection
 *   - message: messages on other connections, and the reports of the wrappers
 *   - file: the reports of the wrappers of files
 *   - start: begin and end of the process, the first wait for connections, signals during a wait
 *   - wrap_*: the functions that the program calls
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
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define PRELOAD_PUBLIC __attribute__((visibility("default")))

/* A second name for a function: pread64 is pread, in glibc too, because long has 64 bits. */
#define PRELOAD_ALIAS(name, function) \
    extern PRELOAD_PUBLIC __typeof__(function) name __attribute__((alias(#function)))

/* ---- the calling thread ---- */

struct preload_thread {
    bool is_inside;        /* this library's code, or code that it calls, is running */
    const void *inside_at; /* the frame of preload_enter() */
};

extern __thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));

/*
 * A seccomp filter may end the process at an unexpected system call. An inherited filter, as in a
 * container, is seen at the start: it allows the calls of the program's own start, and this library
 * makes no others. A filter that the program installs is noticed before that call. Once true, these
 * stay true.
 */
extern __attribute__((visibility("hidden"))) bool preload_has_filter; /* inherited or installed */

/* The program is not traced: wrappers only call the real functions. */
extern __attribute__((visibility("hidden"))) bool preload_is_filtered;

/* Requests are recorded, but this library makes no system calls: see start.c. Connections and files
 * are known only from the program's own calls. */
extern __attribute__((visibility("hidden"))) bool preload_quiet;

static inline bool preload_is_quiet(void)
{
    return __builtin_expect(__atomic_load_n(&preload_quiet, __ATOMIC_RELAXED), 0);
}

/*
 * A signal handler may leave a call by siglongjmp(3), so that its end never comes. Returns true if
 * that has happened to the call that began in `frame`, seen from the frame `now`: a call or handler
 * within it has a lower frame. Frames: __builtin_frame_address(0) of this thread.
 */
__attribute__((cold)) bool preload_was_left(const void *frame, const void *now);

/* The same for our own code. True: it still runs. False: it was left, and the thread's state is
 * repaired. */
__attribute__((cold)) bool preload_is_still_inside(const void *now);

/* Repairs the state of this thread, which has left our code at any place. */
__attribute__((cold)) void preload_mend(void);

/* Returns true for calls of our own code, and where no work is allowed: the wrapper only calls the
 * real function. */
static inline bool preload_is_off(void)
{
    return (__builtin_expect(preload_thread.is_inside, 0) &&
            preload_is_still_inside(__builtin_frame_address(0))) ||
           __atomic_load_n(&preload_is_filtered, __ATOMIC_RELAXED);
}

/* Looks for the agent's rings if it is time. True: spans are wanted. */
__attribute__((cold)) bool preload_finds_rings(void);

/* Returns true if spans are wanted. While the agent's rings may come, looks for them once a second.
 */
static inline bool preload_is_wanted(void)
{
    const int *enabled = __atomic_load_n(&blkin_gate_, __ATOMIC_RELAXED);
    const int wanted = __atomic_load_n(enabled, __ATOMIC_RELAXED);

    return wanted &&
           (__builtin_expect(wanted != BLKIN_LOOKS_FOR_RINGS, 1) || preload_finds_rings());
}

/*
 * Returns true if there is work: spans are wanted, and this is not a call of our own code, of
 * LTTng, or of a signal handler that interrupted ours. If not, the wrapper only calls the real
 * function; for sockets it also counts bytes.
 */
static inline bool preload_is_on(void)
{
    return preload_is_wanted() && !preload_is_off() && preload_config()->is_traced;
}

/* In a child of _Fork(3) or of a bare clone(2), at its first call. */
__attribute__((cold)) void preload_forked(void);

/* Around all work before or after the real call. Returns errno for preload_leave(). */
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

/* Runs a statement without declarations between the two. */
#define PRELOAD_INSIDE(...)                        \
    do {                                           \
        const int inside_errno_ = preload_enter(); \
                                                   \
        __VA_ARGS__;                               \
        preload_leave(inside_errno_);              \
    } while (0)

/* ---- the process ---- */

/* Notes the process id: at the start, and in a child of fork(2). */
void preload_note_process(void);

/* False in a child of vfork(2), which has its own descriptors but its parent's memory. A quiet
 * process cannot tell. */
bool preload_is_own_process(void);

/* Counts forks, including its parents': interactions of an older count belong to the parent. */
extern uint32_t preload_forks;

/*
 * ---- the first wait of a server, and signals meanwhile: start.c ----
 *
 * The library looks for the agent's rings when a server first waits for connections: no client
 * waits yet, the server has its final user, and its forked children inherit the rings. Other
 * programs look at their first request, because most programs under a preload never serve one.
 *
 * Without the library, a signal interrupts a call such as poll(2), which then fails with EINTR. A
 * program whose handler only sets a flag relies on that. So the library ends the call also for a
 * signal that arrives during the library's work.
 */

extern int server_state;
enum {
    SERVER_NONE,
    SERVER_NEW, /* the program listens and has not waited since */
    SERVER_HAS_BEGUN,
};

/* Called when the program listens for connections. */
void server_listens(void);

bool server_begin(bool may_restart);

/* Called before a call in which servers wait. Returns true with errno EINTR if a signal has
 * arrived: the call must fail. may_restart: a handler with SA_RESTART restarts the call */
static inline bool server_before_wait(bool may_restart)
{
    return __builtin_expect(server_state == SERVER_NEW, 0) && !preload_is_off() &&
           server_begin(may_restart);
}

/* Called before the process gets a filter: server_begin() then does nothing. */
void server_never_begins(void);

/* Called after work with blocked signals (blkin_block_signals()) and after preload_leave(). Lets
 * handlers run. Returns true with errno EINTR if a handler ends the call. may_restart: as above */
bool server_let_signals_in(const sigset_t *before, bool may_restart);

/* ---- notifications from a lower file to an upper one ---- */

struct connection;

/* In the child: open interactions belong to the parent. */
void start_after_fork(void);

/* This thread has left the library's code by siglongjmp(3). */
void interaction_after_jump(void);

/* The calling thread ends: see thread_follow(). */
void start_thread_ends(void);

/* The process ends. Also records requests that have caused calls: nobody will answer them. */
void start_end_all(void);

/* Records everything that is answered or deferred, of all threads: the process ends, or must be
 * quiet. */
void start_flush_all(void);

/* The program installs a seccomp filter: prepares everything that needs system calls. False: the
 * process cannot be traced without them. */
bool start_be_quiet(void);

/* The program calls chroot(2): prepares everything that needs the agent's socket or /proc. */
void start_leave_files(void);

/* The last descriptor was closed, with or without a wrapper. */
void message_connection_ends(struct connection *connection);

#endif
