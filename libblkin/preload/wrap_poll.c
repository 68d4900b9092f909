/*
 * Wrappers of the calls that wait for events.
 *
 * While answered interactions are held, a wait is split: if nothing has happened for HOLD_NS, they
 * are over, and the wait goes on for the rest of its time. The program sees one wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"
#include "file.h"
#include "libblkin/base/thread.h"
#include "message.h"
#include "preload.h"
#include "real.h"
#include "server.h"

#include <string.h>
#include <sys/uio.h>

#define HOLD_MS (int)(HOLD_NS / 1000000)

static const struct timespec hold_time = {.tv_nsec = HOLD_NS};

#define IDLE_LOOKS 4 /* of no time, after which a thread goes on with what it has */

static __thread unsigned poll_looks __attribute__((tls_model("initial-exec"))); /* in turn */

/* Before a wait. Returns true if it is to be split. */
static bool poll_waits(bool begins_round)
{
    bool holds;
    int saved_errno;

    if (preload_is_off())
        return false;
    if (begins_round)
        poll_looks = 0;
    if (!interaction_thread.worker) {
        interaction_thread.round += begins_round;
        return false;
    }
    saved_errno = preload_enter();
    if (begins_round)
        interaction_begin_round();
    if (preload_is_wanted() && preload_config()->is_traced) {
        file_record_later();
        holds = interaction_waits_for_events();
    } else {
        file_drop_later();
        interaction_drop_held();
        holds = false;
    }
    preload_leave(saved_errno);
    return holds && !preload_is_quiet(); /* between the parts of a wait, signals are blocked */
}

/*
 * After a wait that began no round before. One of no time begins a round if there was something:
 * else the thread has only looked, and goes on with what it has. A loop that always only looks
 * waits, too.
 */
static void poll_has_waited(bool is_empty)
{
    const int saved_errno = errno;

    if (preload_is_off() || (is_empty && ++poll_looks <= IDLE_LOOKS))
        return;
    poll_looks = 0;
    if (!interaction_thread.worker) {
        interaction_thread.round++;
        return;
    }
    (void)preload_enter();
    interaction_begin_round();
    preload_leave(saved_errno);
}

/* Between the two parts of a wait. True, with errno: a signal has come meanwhile, and ends it. */
static bool poll_is_idle(void)
{
    sigset_t before;
    int saved_errno;

    blkin_block_signals(&before);
    saved_errno = preload_enter();
    interaction_is_idle();
    preload_leave(saved_errno);
    return server_let_signals_in(&before, false);
}

/* ---- times ---- */

static inline bool poll_is_long_ms(int timeout)
{
    return timeout < 0 || timeout > HOLD_MS;
}

static inline int poll_rest_ms(int timeout)
{
    return timeout < 0 ? timeout : timeout - HOLD_MS;
}

/* False for what is no time, too: that is for the real function to find out. */
static bool poll_is_long(const struct timespec *timeout)
{
    return !timeout ||
           (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000 &&
            (timeout->tv_sec > 0 || timeout->tv_nsec > hold_time.tv_nsec));
}

static struct timespec poll_rest_of(const struct timespec *timeout)
{
    struct timespec rest = *timeout;

    rest.tv_nsec -= hold_time.tv_nsec;
    if (rest.tv_nsec < 0) {
        rest.tv_nsec += 1000000000;
        rest.tv_sec--;
    }
    return rest;
}

/* What the program points at is looked at only if the wait is split. */
#define REST(timeout) ((timeout) ? (const struct timespec[]){poll_rest_of(timeout)} : NULL)

/*
 * Copies from an address of the program's that libc hands to the kernel unread: the kernel is asked
 * here, too, so that a bad address is an error and no signal. Many seccomp filters forbid to ask.
 */
static bool poll_copy_from_program(void *to, const void *from, size_t size)
{
    const struct iovec target = {to, size}, source = {(void *)(uintptr_t)from, size};
    const int saved_errno = errno;
    const bool is_copied =
        size == 0 || (!preload_has_filter &&
                      process_vm_readv(getpid(), &target, 1, &source, 1, 0) == (ssize_t)size);

    errno = saved_errno;
    return is_copied;
}

/* ---- what is waited for ---- */

#define SET_SMALL 8

/* Also one that nobody has used: a socket of datagrams, or one that listens. */
static bool poll_is_socket(int fd)
{
    if (!preload_is_known(preload_slot(fd)))
        connection_adopt(fd);
    return preload_is_socket(preload_slot(fd));
}

/*
 * Does the thread wait for one accepted connection and for connections that it has made, and for
 * nothing else? Then it is in the middle of one client's work. A pipe that tells of the program's
 * end does not count until it does.
 */
static bool poll_is_of_one_client(const struct pollfd *fds, nfds_t count)
{
    const struct connection *client = NULL;

    for (nfds_t i = 0; i < count && count > 1; i++) {
        const struct preload_slot *slot = preload_slot(fds[i].fd);
        struct connection *connection = connection_of(slot, 0);
        bool is_strange;

        if (fds[i].fd < 0)
            continue;
        is_strange = connection
                         ? connection->role == ROLE_NONE ||
                               (connection->role == ROLE_SERVER && client && client != connection)
                         : fds[i].revents || poll_is_socket(fds[i].fd);
        if (connection && connection->role == ROLE_SERVER)
            client = connection; /* only to be compared */
        if (connection)
            connection_let_go(connection);
        if (is_strange)
            return false;
    }
    return true;
}

/* Is the wait one in the middle of a request? */
static bool poll_goes_on(const struct pollfd *fds, nfds_t count)
{
    int saved_errno;
    bool goes_on;

    if (preload_is_off())
        return true;
    saved_errno = preload_enter();
    goes_on = poll_is_of_one_client(fds, count);
    preload_leave(saved_errno);
    return goes_on;
}

static bool poll_is_time(const struct timespec *timeout)
{
    return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

/* ---- the wrappers ---- */

/*
 * The body of a wrapper: the call as it is or, split, for HOLD and then for the rest. is_time: is
 * it not of no time? fds: of poll(2), which are looked at only when the kernel has; of few may be
 * seen that they are one client's.
 */
#define WAIT(is_time, fds, count, is_long, whole_call, call_for_hold, call_for_rest) \
    const bool sleeps = is_time, is_small = (count) <= SET_SMALL;                    \
    int result = 0;                                                                  \
                                                                                     \
    if (server_before_wait(false))                                                   \
        return -1;                                                                   \
    if (!poll_waits(sleeps && !is_small) || !(is_long)) {                            \
        result = whole_call;                                                         \
    } else if ((result = call_for_hold) == 0) {                                      \
        if (poll_is_idle())                                                          \
            return -1;                                                               \
        result = call_for_rest;                                                      \
    }                                                                                \
    if (result < 0 || (is_small && poll_goes_on(fds, count)))                        \
        return result;                                                               \
    if (!sleeps || is_small)                                                         \
        poll_has_waited(!sleeps && result == 0);                                     \
    interaction_thread.has_one_event = sleeps && result == 1;                        \
    return result

#define ANY_COUNT (SET_SMALL + 1)

PRELOAD_PUBLIC int epoll_ctl(int poll, int operation, int fd, struct epoll_event *event)
{
    const int result = real()->epoll_ctl(poll, operation, fd, event);
    struct connection *connection;
    int saved_errno;

    /* where each change is told, and not all is asked for once and for all */
    if (result < 0 || operation == EPOLL_CTL_DEL ||
        (event->events & (EPOLLOUT | EPOLLET)) != EPOLLOUT || !interaction_thread.worker ||
        !preload_is_on() || !(connection = connection_of(preload_slot(fd), 0)))
        return result;
    saved_errno = preload_enter();
    if (connection->role == ROLE_CLIENT)
        called_will_write(connection);
    preload_leave(saved_errno);
    connection_let_go(connection);
    return result;
}

PRELOAD_PUBLIC int epoll_wait(int fd, struct epoll_event *events, int size, int timeout)
{
    WAIT(timeout != 0, NULL, ANY_COUNT, poll_is_long_ms(timeout),
         real()->epoll_wait(fd, events, size, timeout),
         real()->epoll_wait(fd, events, size, HOLD_MS),
         real()->epoll_wait(fd, events, size, poll_rest_ms(timeout)));
}

PRELOAD_PUBLIC int epoll_pwait(int fd, struct epoll_event *events, int size, int timeout,
                               const sigset_t *mask)
{
    WAIT(timeout != 0, NULL, ANY_COUNT, poll_is_long_ms(timeout),
         real()->epoll_pwait(fd, events, size, timeout, mask),
         real()->epoll_pwait(fd, events, size, HOLD_MS, mask),
         real()->epoll_pwait(fd, events, size, poll_rest_ms(timeout), mask));
}

PRELOAD_PUBLIC int epoll_pwait2(int fd, struct epoll_event *events, int size,
                                const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec copy;

    if (!real()->epoll_pwait2) {
        errno = ENOSYS;
        return -1;
    }
    WAIT(true, NULL, ANY_COUNT,
         !timeout || (poll_copy_from_program(&copy, timeout, sizeof(copy)) && poll_is_long(&copy)),
         real()->epoll_pwait2(fd, events, size, timeout, mask),
         real()->epoll_pwait2(fd, events, size, &hold_time, mask),
         real()->epoll_pwait2(fd, events, size,
                              timeout ? (const struct timespec[]){poll_rest_of(&copy)} : NULL,
                              mask));
}

PRELOAD_PUBLIC int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    WAIT(timeout != 0, fds, count, poll_is_long_ms(timeout), real()->poll(fds, count, timeout),
         real()->poll(fds, count, HOLD_MS), real()->poll(fds, count, poll_rest_ms(timeout)));
}

/* The real one ends the program if its array is too small. */
PRELOAD_PUBLIC int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    return room / sizeof(*fds) < count ? real()->__poll_chk(fds, count, timeout, room)
                                       : poll(fds, count, timeout);
}

PRELOAD_PUBLIC int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                         const sigset_t *mask)
{
    WAIT(poll_is_time(timeout), fds, count, poll_is_long(timeout),
         real()->ppoll(fds, count, timeout, mask), real()->ppoll(fds, count, &hold_time, mask),
         real()->ppoll(fds, count, REST(timeout), mask));
}

PRELOAD_PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                               const sigset_t *mask, size_t room)
{
    return room / sizeof(*fds) < count ? real()->__ppoll_chk(fds, count, timeout, mask, room)
                                       : ppoll(fds, count, timeout, mask);
}

/* ---- sets: they are the program's question and the kernel's answer in one ---- */

struct sets {
    size_t size; /* of what is in use, in bytes */
    fd_set *at[3];
    fd_set asked[3];
};

/* False for sets that are larger than the type or cannot be read: then the wait is not split. */
static bool poll_keep_sets(struct sets *sets, int count, fd_set *readable, fd_set *writable,
                           fd_set *failed)
{
    fd_set *const at[3] = {readable, writable, failed};

    if (count < 0 || count > FD_SETSIZE)
        return false;
    sets->size = ((size_t)count + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    for (int i = 0; i < 3; i++) {
        sets->at[i] = at[i];
        if (at[i] && !poll_copy_from_program(&sets->asked[i], at[i], sets->size))
            return false;
    }
    return true;
}

static void poll_ask_again(const struct sets *sets)
{
    for (int i = 0; i < 3; i++) {
        if (sets->at[i])
            memcpy(sets->at[i], &sets->asked[i], sets->size);
    }
}

/* select(2) takes from the timeout what it has waited. */
static void poll_take_time(struct timeval *timeout, suseconds_t waited_us)
{
    if (!timeout)
        return;
    timeout->tv_usec -= waited_us;
    if (timeout->tv_usec < 0) {
        timeout->tv_usec += 1000000;
        timeout->tv_sec--;
    }
}

/* As poll_is_long(): false for negative ones, which are errors. More than 10^6 us are valid. */
static bool poll_is_long_timeval(const struct timeval *timeout)
{
    return timeout->tv_sec >= 0 && timeout->tv_usec >= 0 &&
           (timeout->tv_sec > 0 || timeout->tv_usec > (suseconds_t)(HOLD_NS / 1000));
}

PRELOAD_PUBLIC int select(int count, fd_set *readable, fd_set *writable, fd_set *failed,
                          struct timeval *timeout)
{
    const suseconds_t hold_us = (suseconds_t)(HOLD_NS / 1000);
    const bool sleeps = !timeout || timeout->tv_sec || timeout->tv_usec;
    struct timeval hold = {.tv_usec = hold_us};
    struct sets sets;
    int result;

    if (server_before_wait(false))
        return -1;
    if (!poll_waits(sleeps) || (timeout && !poll_is_long_timeval(timeout)) ||
        !poll_keep_sets(&sets, count, readable, writable, failed)) {
        result = real()->select(count, readable, writable, failed, timeout);
    } else {
        result = real()->select(count, readable, writable, failed, &hold);
        poll_take_time(timeout, hold_us - hold.tv_usec);
        if (result == 0) {
            if (poll_is_idle())
                return -1;
            poll_ask_again(&sets);
            result = real()->select(count, readable, writable, failed, timeout);
        }
    }
    if (result >= 0) {
        if (!sleeps)
            poll_has_waited(result == 0);
        interaction_thread.has_one_event = sleeps && result == 1;
    }
    return result;
}

PRELOAD_PUBLIC int pselect(int count, fd_set *readable, fd_set *writable, fd_set *failed,
                           const struct timespec *timeout, const sigset_t *mask)
{
    struct sets sets;

    WAIT(poll_is_time(timeout), NULL, ANY_COUNT,
         poll_is_long(timeout) && poll_keep_sets(&sets, count, readable, writable, failed),
         real()->pselect(count, readable, writable, failed, timeout, mask),
         real()->pselect(count, readable, writable, failed, &hold_time, mask),
         (poll_ask_again(&sets),
          real()->pselect(count, readable, writable, failed, REST(timeout), mask)));
}
