/*
 * The guard against ourselves, and which process this is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload.h"

#include <signal.h>
#include <unistd.h>

__thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));
bool preload_has_filter, preload_is_filtered, preload_quiet;
uint32_t preload_forks;

static pid_t preload_own_pid;

/* ---- hooks ---- */

static void preload_tell_nobody(void)
{
}

static void preload_tell_nobody_of(struct connection *connection)
{
    (void)connection;
}

static const struct preload_hooks preload_no_hooks = {
    .forked = preload_tell_nobody,
    .jumped = preload_tell_nobody,
    .thread_ends = preload_tell_nobody,
    .process_ends = preload_tell_nobody,
    .connection_ends = preload_tell_nobody_of,
};

const struct preload_hooks *preload_hooks_in_force = &preload_no_hooks;

void preload_set_hooks(const struct preload_hooks *hooks)
{
    __atomic_store_n(&preload_hooks_in_force, hooks, __ATOMIC_RELEASE);
}

/* ---- the guard ---- */

bool preload_was_left(const void *frame, const void *now)
{
    const int saved_errno = errno;
    stack_t stack;
    bool was_left;

    if (now < frame || preload_is_quiet())
        return false;
    /* a handler on a stack of its own is within, wherever that is */
    was_left = sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK);
    errno = saved_errno;
    return was_left;
}

bool preload_is_still_inside(const void *now)
{
    if (!preload_was_left(preload_thread.inside_at, now))
        return true;
    preload_hooks()->jumped();
    preload_thread.is_inside = false;
    return false;
}

bool preload_finds_rings(void)
{
    bool is_wanted;
    int saved_errno;

    if (preload_is_off()) /* a wrapper's own code asks, too, in the middle of it */
        return preload_thread.is_inside && blkin_wants_spans_(false);
    if (!preload_config()->is_traced)
        return false;
    saved_errno = preload_enter();
    is_wanted = blkin_wants_spans_(true);
    preload_leave(saved_errno);
    return is_wanted;
}

/* ---- the process ---- */

void preload_note_process(void)
{
    preload_own_pid = getpid();
}

bool preload_is_own_process(void)
{
    return preload_is_quiet() || getpid() == preload_own_pid || !*blkin_process_mark_;
}

void preload_forked(void)
{
    blkin_forked_();
    if (*blkin_process_mark_) /* else libblkin has not begun */
        preload_hooks()->forked();
}
