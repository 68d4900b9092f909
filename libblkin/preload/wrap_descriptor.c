/*
 * Wrappers of calls that open, duplicate and close descriptors, and of the end of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"
#include "libblkin/process/lttng.h"
#include "message.h"
#include "preload.h"
#include "real.h"
#include "thread.h"

#include <limits.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdlib.h>

static int descriptor_accepted(int fd, int listener, const struct sockaddr *address,
                               const socklen_t *length)
{
    if (fd >= 0 && !preload_is_off()) {
        const int saved_errno = preload_enter();

        /* *length is only valid with an address */
        connection_accepted(fd, listener, address, address ? *length : 0);
        interaction_clear_heard();
        /* a server that only accepts and forks calls nothing else that looks for the agent's
         * rings */
        if (preload_config()->is_traced)
            (void)blkin_wants_spans_(true);
        preload_leave(saved_errno);
    }
    return fd;
}

/* Returns false with errno set if a signal has arrived. */
static bool descriptor_before_accept(void)
{
    if (server_before_wait(true))
        return false;
    if (interaction_thread.worker && preload_is_on())
        PRELOAD_INSIDE(file_record_deferred(), interaction_before_accept());
    return true;
}

PRELOAD_PUBLIC int listen(int fd, int length)
{
    const int result = real()->listen(fd, length);

    if (result == 0)
        server_note_listen();
    return result;
}

PRELOAD_PUBLIC int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    return descriptor_before_accept()
               ? descriptor_accepted(real()->accept(fd, address, length), fd, address, length)
               : -1;
}

PRELOAD_PUBLIC int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return descriptor_before_accept()
               ? descriptor_accepted(real()->accept4(fd, address, length, flags), fd, address,
                                     length)
               : -1;
}

/* Reads the address after the real call, because the kernel has checked it then. */
PRELOAD_PUBLIC int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    const int result = real()->connect(fd, address, length);

    if ((result == 0 || errno == EINPROGRESS || errno == EINTR) && !preload_is_off()) {
        const bool is_on = preload_is_on();

        PRELOAD_INSIDE(called_connect(fd, address, length, is_on));
    }
    return result;
}

/* Forgets a known descriptor of that number: it was closed without a wrapper. */
PRELOAD_PUBLIC int socket(int domain, int type, int protocol)
{
    const int fd = real()->socket(domain, type, protocol);

    connection_forget_new(fd);
    if (preload_is_quiet() && fd >= 0 && (type & 0xf) != SOCK_STREAM)
        connection_set_no_stream(fd);
    return fd;
}

PRELOAD_PUBLIC int socketpair(int domain, int type, int protocol, int fds[2])
{
    const int result = real()->socketpair(domain, type, protocol, fds);

    if (result == 0) {
        connection_forget_new(fds[0]);
        connection_forget_new(fds[1]);
    }
    return result;
}

/* Called before the real call: after that, another thread may open the same number. */
static void descriptor_before_close(int fd)
{
    if (preload_is_known(preload_slot(fd)))
        connection_forget_new(fd);
}

/* Returns LTTng's functions, or NULL. They close descriptors except those of LTTng, which the
 * program does not know. */
static const struct blkin_provider *descriptor_lttng(void)
{
    return __atomic_load_n(&preload_is_filtered, __ATOMIC_RELAXED) ? NULL : blkin_lttng_();
}

PRELOAD_PUBLIC int close(int fd)
{
    const struct blkin_provider *lttng = descriptor_lttng();

    descriptor_before_close(fd);
    return lttng ? lttng->close(fd, real()->close) : real()->close(fd);
}

static void descriptor_before_close_range(unsigned first, unsigned last)
{
    if (preload_is_off() || first > last || !preload_is_own_process())
        return;
    PRELOAD_INSIDE(connection_forget_range(first, last));
}

static int descriptor_close_range(unsigned first, unsigned last, int flags)
{
    const struct blkin_provider *lttng = descriptor_lttng();

    if (!lttng || flags & CLOSE_RANGE_CLOEXEC)
        return real()->close_range(first, last, flags);
    return lttng->close_range(first, last, flags, real()->close_range);
}

PRELOAD_PUBLIC int close_range(unsigned first, unsigned last, int flags)
{
    if (!real()->close_range) {
        errno = ENOSYS;
        return -1;
    }
    if (!(flags & (CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE)))
        descriptor_before_close_range(first, last);
    return descriptor_close_range(first, last, flags);
}

PRELOAD_PUBLIC void closefrom(int first)
{
    descriptor_before_close_range(first > 0 ? (unsigned)first : 0, INT_MAX);
    if (real()->close_range &&
        descriptor_close_range(first > 0 ? (unsigned)first : 0, UINT_MAX, 0) == 0)
        return;
    if (real()->closefrom)
        real()->closefrom(first);
}

static int descriptor_duplicated(int from, int to)
{
    if (to >= 0 && to != from && !preload_is_off() &&
        (preload_is_known(preload_slot(from)) || preload_is_known(preload_slot(to))) &&
        preload_is_own_process())
        PRELOAD_INSIDE(connection_duplicated(from, to));
    return to;
}

PRELOAD_PUBLIC int dup(int fd)
{
    return descriptor_duplicated(fd, real()->dup(fd));
}

PRELOAD_PUBLIC int dup2(int from, int to)
{
    return descriptor_duplicated(from, real()->dup2(from, to));
}

PRELOAD_PUBLIC int dup3(int from, int to, int flags)
{
    return descriptor_duplicated(from, real()->dup3(from, to, flags));
}

/* Passes on the third argument unchanged: a number, a pointer or nothing. */
PRELOAD_PUBLIC int fcntl(int fd, int command, ...)
{
    va_list arguments;
    void *argument;
    int result;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    result = real()->fcntl(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        (void)descriptor_duplicated(fd, result);
    return result;
}
PRELOAD_ALIAS(fcntl64, fcntl);

/* The response is complete, because the program sends no more. */
PRELOAD_PUBLIC int shutdown(int fd, int how)
{
    if (preload_is_on() && how != SHUT_RD) {
        struct connection *connection = connection_of(preload_slot(fd), 0);

        if (connection) {
            PRELOAD_INSIDE(message_end_sending(connection));
            connection_release(connection);
        }
    }
    return real()->shutdown(fd, how);
}

/* exit(3) calls thread_at_exit() of thread.c. */
PRELOAD_PUBLIC void _exit(int status)
{
    if (thread_is_any_followed() && !preload_is_off() && preload_is_own_process())
        thread_end_process();
    real()->_exit(status);
    __builtin_unreachable();
}

PRELOAD_PUBLIC void _Exit(int status)
{
    _exit(status);
}
