/*
 * Wrappers of calls that reduce the process's rights, such as seccomp(2), chroot(2) and setuid(2).
 * The wrappers of pthread_cancel(3) and syscall(2) skip calls of LTTng at the end of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void filter_before_install(void)
{
    int saved_errno;

    if (preload_is_off() || preload_is_quiet())
        return;
    saved_errno = preload_enter();
    if (!start_make_quiet()) {
        start_flush_all(); /* while system calls are still allowed */
        preload_has_filter = true;
        __atomic_store_n(&preload_is_filtered, true, __ATOMIC_RELEASE);
    }
    preload_leave(saved_errno);
}

PRELOAD_PUBLIC int prctl(int option, ...)
{
    unsigned long argument[4];
    va_list arguments;

    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        filter_before_install();
    return real()->prctl(option, argument[0], argument[1], argument[2], argument[3]);
}

PRELOAD_PUBLIC int chroot(const char *path)
{
    if (!preload_is_off() && !preload_is_quiet() && preload_config()->is_traced &&
        preload_is_own_process())
        PRELOAD_INSIDE(start_before_chroot());
    return real()->chroot(path);
}

static int filter_after_set_user(int result)
{
    if (result == 0 && !preload_is_off() && !preload_is_quiet() && preload_is_own_process())
        PRELOAD_INSIDE(blkin_after_chroot_());
    return result;
}

PRELOAD_PUBLIC int setuid(uid_t user)
{
    return filter_after_set_user(real()->setuid(user));
}

PRELOAD_PUBLIC int setreuid(uid_t user, uid_t effective)
{
    return filter_after_set_user(real()->setreuid(user, effective));
}

PRELOAD_PUBLIC int setresuid(uid_t user, uid_t effective, uid_t saved)
{
    return filter_after_set_user(real()->setresuid(user, effective, saved));
}

/*
 * Returns true if LTTng calls within exit(3), and a filter was installed after LTTng's start. LTTng
 * then cancels its threads and calls membarrier(2), which filters rarely allow. The process ends
 * anyway, so the wrappers skip these calls. dladdr(3) needs no system call.
 */
static bool filter_is_end_of_lttng(const void *caller)
{
    Dl_info info;

    return (preload_is_filtered || preload_is_quiet()) && dladdr(caller, &info) && info.dli_fname &&
           strstr(info.dli_fname, "/liblttng-ust");
}

PRELOAD_PUBLIC int pthread_cancel(pthread_t thread)
{
    if (filter_is_end_of_lttng(__builtin_return_address(0)))
        return 0;
    return real()->pthread_cancel(thread);
}

/* Programs call seccomp(2) by syscall(2), because libc has no function for it. */
PRELOAD_PUBLIC long syscall(long number, ...)
{
    long argument[6];
    va_list arguments;

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_seccomp && argument[0] != SECCOMP_GET_ACTION_AVAIL &&
        argument[0] != SECCOMP_GET_NOTIF_SIZES)
        filter_before_install();
    if (number == SYS_membarrier && filter_is_end_of_lttng(__builtin_return_address(0)))
        return 0;
    return real()->syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                           argument[5]);
}
