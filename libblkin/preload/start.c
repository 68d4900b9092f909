/*
 * Start and end of the process and of threads, fork(2), the first wait of a server, signals during
 * that wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"
#include "file.h"
#include "libblkin/process/lttng.h"
#include "libblkin/base/thread.h"
#include "message.h"
#include "preload.h"
#include "thread.h"

#include <pthread.h>
#include <string.h>

void start_flush_all(void)
{
    interaction_stop_work();
    file_record_all();
    interaction_flush_all();
}

void start_end_all(void)
{
    start_flush_all();
    interaction_end_unanswered();
}

/* The child forgets all interactions, because the parent records them. This library has no locks
 * that a fork could leave locked. If another thread was changing a pool during the fork, the
 * child's pool may lose the object that was added or taken. */
void start_after_fork(void)
{
    if (preload_is_filtered)
        return;
    if (!preload_is_quiet())
        preload_note_process();
    preload_forks++;
    message_forget_all();
    file_forget_all();
    thread_forget_all();
}

/* Deferred file calls are recorded first, before their requests. */
void start_end_thread(void)
{
    if (!preload_is_filtered) {
        file_record_deferred();
        message_end_thread();
    }
    file_drop_thread();
    interaction_drop_worker();
}

/* ---- the first wait of a server ---- */

int server_state;

/* Returns false if the state is not `from`. */
static bool server_change_state(int from, int to)
{
    return __atomic_compare_exchange_n(&server_state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void server_note_listen(void)
{
    (void)server_change_state(SERVER_NONE, SERVER_NEW);
}

bool server_begin(bool may_restart)
{
    sigset_t before;
    int saved_errno;

    blkin_block_signals(&before);
    saved_errno = preload_enter();
    if (server_change_state(SERVER_NEW, SERVER_HAS_BEGUN) && preload_config()->is_traced) {
        blkin_server_begins_();
        /* now, so that the children forked for each connection need not do it */
        connection_prepare_keys();
    }
    preload_leave(saved_errno);
    return server_deliver_signals(&before, may_restart);
}

void server_skip_begin(void)
{
    __atomic_store_n(&server_state, SERVER_HAS_BEGUN, __ATOMIC_RELEASE);
}

/* ---- signals ---- */

/* Returns true if the signal's handler ends a call with EINTR. Ignored signals, and those that stop
 * or end the process, do not. */
static bool server_signal_ends_call(int number, bool may_restart)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN && !(may_restart && action.sa_flags & SA_RESTART);
}

bool server_deliver_signals(const sigset_t *before, bool may_restart)
{
    const int saved_errno = errno;
    bool ends_call = false;
    sigset_t waiting;

    (void)sigpending(&waiting);
    for (int number = 1; number < NSIG && !ends_call; number++)
        ends_call = sigismember(&waiting, number) == 1 && sigismember(before, number) == 0 &&
                    server_signal_ends_call(number, may_restart);
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = ends_call ? EINTR : saved_errno;
    return ends_call;
}

/* ---- the start ---- */

PRELOAD_PUBLIC const char blkin_preload_decides_ = 1;

bool start_make_quiet(void)
{
    if (!preload_config()->is_traced || preload_config()->seccomp == PRELOAD_SECCOMP_LEAVE ||
        !thread_follow() || !blkin_be_quiet_())
        return false;
    preload_config_freeze();
    server_skip_begin();
    connection_reserve();
    interaction_reserve();
    file_reserve();
    thread_reserve();
    pool_freeze();
    preload_has_filter = true;
    __atomic_store_n(&preload_quiet, true, __ATOMIC_RELEASE);
    return true;
}

void start_before_chroot(void)
{
    blkin_before_chroot_();
    (void)connection_is_ephemeral(0);
    connection_prepare_keys();
}

static bool start_has_filter(void)
{
    char text[4096];
    const char *line;

    (void)preload_read_file("/proc/self/status", text, sizeof(text));
    line = strstr(text, "\nSeccomp:\t");
    return line && line[strlen("\nSeccomp:\t")] != '0';
}

__attribute__((constructor(103))) static void start(void)
{
    const int saved_errno = errno;

    preload_note_process();
    preload_config_init();
    preload_has_filter = start_has_filter();
    if (preload_has_filter && preload_config()->seccomp == PRELOAD_SECCOMP_LEAVE)
        preload_is_filtered = true;
    (void)pthread_atfork(NULL, NULL, start_after_fork);
    if (preload_has_filter && preload_config()->seccomp != PRELOAD_SECCOMP_TRACE)
        blkin_lttng_start_(false);
    else if (preload_config()->is_traced)
        blkin_lttng_start_(true);
    errno = saved_errno;
}
