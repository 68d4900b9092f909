/*
 * Limits that servers set for themselves.
 *
 * Threads: haproxy 3 sets RLIMIT_NPROC to 0 before its first wait. LTTng is loaded before that,
 * since it cannot start its own threads afterwards.
 *
 * Address space: a server that forks for each connection may limit its child to what
 * it needs itself, as vsftpd does (200 MB), and LTTng came along from the parent: its threads'
 * stacks and heaps reserve more than 100 MB, a session's buffers come on top. So the limit that a
 * server sets is made wider by what the address space has grown by since LTTng was loaded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload.h"
#include "real.h"
#include "server.h"

#include <sys/resource.h>

static void limit_widen(rlim_t *limit, rlim_t growth, rlim_t most)
{
    if (*limit == RLIM_INFINITY || *limit > most)
        return;
    *limit = growth > most - *limit ? most : *limit + growth;
}

/* Returns the limit to be set: the program's own, or a wider one in *wide. */
__attribute__((unused)) static const struct rlimit *
limit_wide_enough(int resource, const struct rlimit *asked, struct rlimit *wide)
{
    struct rlimit now;
    rlim_t growth;
    int saved_errno;

    if (resource == RLIMIT_NPROC && asked && !preload_is_off()) {
        (void)server_before_wait(true);
        server_await_load(); /* each of haproxy's threads sets the limit, at the same time */
    }
    if (resource != RLIMIT_AS || !asked || preload_is_off())
        return asked;
    saved_errno = preload_enter();
    growth = server_growth();
    if (growth && getrlimit(RLIMIT_AS, &now) == 0) {
        *wide = *asked;
        limit_widen(&wide->rlim_cur, growth, now.rlim_max);
        limit_widen(&wide->rlim_max, growth, now.rlim_max);
        asked = wide;
    }
    preload_leave(saved_errno);
    return asked;
}

/* AddressSanitizer and ThreadSanitizer set limits before instrumented code can run: not below them.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifndef IS_SANITIZED
PRELOAD_PUBLIC int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    struct rlimit wide;

    return real()->setrlimit(resource, limit_wide_enough((int)resource, limit, &wide));
}

PRELOAD_PUBLIC int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,
                           struct rlimit *old)
{
    struct rlimit wide;

    if (pid == 0 || pid == getpid())
        limit = limit_wide_enough((int)resource, limit, &wide);
    return real()->prlimit(pid, resource, limit, old);
}

/* Where long has 64 bits, as here, the same. */
PRELOAD_PUBLIC int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
    return setrlimit(resource, (const struct rlimit *)limit);
}

PRELOAD_PUBLIC int prlimit64(pid_t pid, enum __rlimit_resource resource,
                             const struct rlimit64 *limit, struct rlimit64 *old)
{
    return prlimit(pid, resource, (const struct rlimit *)limit, (struct rlimit *)old);
}
#endif /* IS_SANITIZED */
