/*
 * The real functions, the guard against calls of our own code, and the identity of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload.h"

#include "libblkin/process/lttng.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct preload_thread preload_thread __attribute__((tls_model("initial-exec")));
bool preload_has_filter, preload_is_filtered, preload_quiet;
uint32_t preload_forks;

static pid_t preload_own_pid;

/* ---- the real functions ---- */

struct preload_real preload_real_functions;
bool preload_real_is_ready;

/* Copies the pointer as bytes, because ISO C cannot convert a void * to a function. Two threads may
 * do so at the same time: they find the same function. */
static void preload_find(void *pointer, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(pointer, &found, sizeof(found));
}

void preload_find_real(void)
{
    const int saved_errno = errno;

#define FIND(name) preload_find(&preload_real_functions.name, #name);
    PRELOAD_EACH_REAL(FIND)
    __atomic_store_n(&preload_real_is_ready, true, __ATOMIC_RELEASE);
    errno = saved_errno;
}

ssize_t preload_read_file(const char *path, char *text, size_t size)
{
    const int fd = (int)real()->syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : real()->syscall(SYS_read, fd, text, size - 1);

    if (fd >= 0)
        (void)real()->syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* Runs before all other constructors of this library. */
__attribute__((constructor(101))) static void preload_find_at_start(void)
{
    preload_find_real();
}

/* ---- the guard ---- */

bool preload_was_left(const void *frame, const void *now)
{
    const int saved_errno = errno;
    stack_t stack;
    bool was_left;

    if (now < frame || preload_is_quiet())
        return false;
    /* on an alternate stack, a handler within the call may have a higher frame */
    was_left = sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK);
    errno = saved_errno;
    return was_left;
}

bool preload_is_still_inside(const void *now)
{
    if (!preload_was_left(preload_thread.inside_at, now))
        return true;
    preload_repair();
    preload_thread.is_inside = false;
    return false;
}

void preload_repair(void)
{
    const struct blkin_provider *lttng = blkin_lttng_();

    if (lttng)
        lttng->leave();
    interaction_after_jump();
}

bool preload_look_for_rings(void)
{
    bool is_wanted;

    if (preload_is_off()) /* the library's own code also asks whether spans are wanted */
        return preload_thread.is_inside && blkin_wants_spans_(false);
    if (!preload_config()->is_traced)
        return false;
    PRELOAD_INSIDE(is_wanted = blkin_wants_spans_(true));
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

void preload_after_fork(void)
{
    blkin_forked_();
    if (*blkin_process_mark_) /* false: libblkin's constructor has not run yet */
        start_after_fork();
}
