/*
 * libblkin-preload.so records requests of programs that nobody instrumented. The library wraps
 * functions of libc that the programs call.
 *
 * A wrapper finds the state of its descriptor, calls the real function (real.h), and reports the
 * call to message.h (sockets) or file.h (files). This header has what all parts share: whether
 * spans are wanted, the guard against calls of our own code, and the identity of the process.
 *
 * Each file uses only files that are earlier in this list:
 *   - config: the configuration; real: the functions of libc; key: hashes of data of requests
 *   - preload: this file
 *   - pool: objects without locks
 *   - thread: the counts and the end of each thread
 *   - connection: the table of descriptors, and connections
 *   - interaction: a request with its answer, and all requests of a thread; file_sums: sums
 *     of file calls
 *   - cause: the request that has caused a call
 *   - served: messages on an accepted connection
 *   - message: messages on a client's connection, and the functions that wrappers of sockets call
 *   - file: the functions that wrappers of files call
 *   - start: start and end of the process, the first wait for connections, signals during a wait
 *   - wrap_*: the functions that the program calls
 * The end of this header declares functions of later files that earlier files call.
 *
 * Rules for each wrapper:
 * - It calls the real function once, with the program's own arguments, and returns its errno. (A
 *   wait may be split in two: see wrap_poll.c.)
 * - Between preload_enter() and preload_leave(), nothing blocks, is a cancellation point or calls
 *   the program's code. The real call is never between them: a thread may not return from it.
 * - The wrapper finds the descriptor's state again after the real call: meanwhile, the descriptor
 *   may have been closed and opened again.
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

/* Defines a second name for a function. On 64-bit machines pread64 is pread, in glibc, too. */
#define PRELOAD_ALIAS(name, function) \
    extern PRELOAD_PUBLIC __typeof__(function) name __attribute__((alias(#function)))

/* ---- the calling thread ---- */

struct preload_thread {
    bool is_inside;        /* this library's code, or code that it calls, is running */
    const void *inside_at; /* the frame of preload_enter() */
};

extern __thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));

/*
 * A seccomp filter may end the process at an unexpected system call. The library finds an inherited
 * filter, as in a container, at the start. Such a filter allows the system calls of the program's
 * own start, and this library makes no other system calls. The library also notices when the
 * program is about to install a filter. The following three variables never become false again.
 */
extern __attribute__((visibility("hidden"))) bool preload_has_filter; /* inherited or installed */

/* The program must not be traced: wrappers only call the real functions. */
extern __attribute__((visibility("hidden"))) bool preload_is_filtered;

/* The process is quiet: requests are recorded, but this library makes no system calls. The library
 * learns of connections and files only from the program's own calls. See start_make_quiet(). */
extern __attribute__((visibility("hidden"))) bool preload_quiet;

static inline bool preload_is_quiet(void)
{
    return __builtin_expect(__atomic_load_n(&preload_quiet, __ATOMIC_RELAXED), 0);
}

/*
 * A signal handler may leave a call by siglongjmp(3), and the call never ends. Returns true if the
 * call that began in the stack frame `frame` was left. The caller is in the frame `now`, which
 * would be lower within that call. Frames: __builtin_frame_address(0) of this thread.
 */
__attribute__((cold)) bool preload_was_left(const void *frame, const void *now);

/* Returns true if this library's code still runs on this thread. If a jump has left the code,
 * repairs the thread's state and returns false. */
__attribute__((cold)) bool preload_is_still_inside(const void *now);

/* Repairs the state of this thread after a jump out of this library's code. */
__attribute__((cold)) void preload_repair(void);

/* Returns true if the wrapper must only call the real function: it was called by this library's
 * code, or the program must not be traced. */
static inline bool preload_is_off(void)
{
    return (__builtin_expect(preload_thread.is_inside, 0) &&
            preload_is_still_inside(__builtin_frame_address(0))) ||
           __atomic_load_n(&preload_is_filtered, __ATOMIC_RELAXED);
}

/* Looks for the agent's rings, at most once a second. Returns true if spans are wanted. */
__attribute__((cold)) bool preload_look_for_rings(void);

/* Returns true if spans are wanted. Looks for the agent's rings once a second as long as there are
 * none. */
static inline bool preload_is_wanted(void)
{
    const int *enabled = __atomic_load_n(&blkin_gate_, __ATOMIC_RELAXED);
    const int wanted = __atomic_load_n(enabled, __ATOMIC_RELAXED);

    return wanted &&
           (__builtin_expect(wanted != BLKIN_LOOKS_FOR_RINGS, 1) || preload_look_for_rings());
}

/*
 * Returns true if the call is to be recorded. False: spans are not wanted, the program is not
 * traced, or the caller is this library, LTTng, or a signal handler that interrupted this library.
 * The wrapper then only calls the real function; a wrapper of sockets also counts bytes.
 */
static inline bool preload_is_on(void)
{
    return preload_is_wanted() && !preload_is_off() && preload_config()->is_traced;
}

/* Called at the first call of a wrapper in a child of _Fork(3) or of a bare clone(2). */
__attribute__((cold)) void preload_after_fork(void);

/* Called around all work before or after the real call. Returns errno for preload_leave(). */
static inline int preload_enter(void)
{
    const int saved_errno = errno;

    preload_thread.inside_at = __builtin_frame_address(0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    preload_thread.is_inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!*blkin_process_mark_, 0))
        preload_after_fork();
    return saved_errno;
}

static inline void preload_leave(int saved_errno)
{
    errno = saved_errno;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    preload_thread.is_inside = false;
}

/* Runs statements between preload_enter() and preload_leave(). The statements must not declare
 * variables. */
#define PRELOAD_INSIDE(...)                        \
    do {                                           \
        const int inside_errno_ = preload_enter(); \
                                                   \
        __VA_ARGS__;                               \
        preload_leave(inside_errno_);              \
    } while (0)

/* ---- the process ---- */

/* Stores the process id: called at the start, and in a child of fork(2). */
void preload_note_process(void);

/* Returns false in a child of vfork(2), which has its own descriptors but its parent's memory.
 * Always true in a quiet process, which cannot ask for its id. */
bool preload_is_own_process(void);

/* Number of forks from the first traced process to this one. Interactions with a lower number
 * belong to a parent. */
extern uint32_t preload_forks;

/*
 * ---- the first wait of a server, and signals meanwhile: start.c ----
 *
 * The library looks for the agent's rings when a server first waits for connections. At that time
 * no client waits, the server has its final user, and its forked children inherit the rings. In
 * other programs the library looks at the first request, because most programs never have one.
 *
 * A signal ends a call such as poll(2) with EINTR. A program whose handler only sets a flag relies
 * on that. So the library also returns EINTR for a signal that arrives during the library's work.
 */

extern int server_state;
enum {
    SERVER_NONE,
    SERVER_NEW, /* the program listens and has not waited since */
    SERVER_HAS_BEGUN,
};

/* Called when the program calls listen(2). */
void server_note_listen(void);

/* The slow path of server_before_wait(). */
bool server_begin(bool may_restart);

/* Called before a call in which servers wait. Returns true with errno EINTR if a signal has
 * arrived: the call must fail. may_restart: a handler with SA_RESTART restarts the call. */
static inline bool server_before_wait(bool may_restart)
{
    return __builtin_expect(server_state == SERVER_NEW, 0) && !preload_is_off() &&
           server_begin(may_restart);
}

/* Called before the process gets a filter. server_before_wait() then does nothing. */
void server_skip_begin(void);

/* Called after preload_leave(), at the end of work with blocked signals: blkin_block_signals().
 * Unblocks them, so that handlers run. Returns true with errno EINTR if a handler ends the call. */
bool server_deliver_signals(const sigset_t *before, bool may_restart);

/* ---- functions of later files that earlier files call ---- */

struct connection;

/* Called in a child of fork(2). Forgets all interactions: they belong to the parent. */
void start_after_fork(void);

/* Called when this thread has left the library's code by siglongjmp(3). */
void interaction_after_jump(void);

/* Called at the end of the calling thread: see thread_follow(). */
void start_end_thread(void);

/* Called at the end of the process. Calls start_flush_all(), and then
 * interaction_end_unanswered(). */
void start_end_all(void);

/* Records all answered interactions and deferred file calls of all threads. */
void start_flush_all(void);

/* Called before the program installs a seccomp filter. Makes the process quiet. Returns false if it
 * cannot be traced without system calls. */
bool start_make_quiet(void);

/* Called before chroot(2). Prepares everything that needs the agent's socket or /proc. */
void start_before_chroot(void);

/* Called when the last descriptor of the connection was closed, with or without a wrapper. */
void message_end_connection(struct connection *connection);

#endif
