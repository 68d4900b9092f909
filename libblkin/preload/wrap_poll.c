/*
 * Wrappers of the calls that wait for events.
 *
 * While answered interactions are held, a wait is split. After INTERACTION_HOLD_NS without an
 * event, the wrapper records these interactions, and waits for the rest of the time. The program
 * sees one wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"
#include "file.h"
#include "libblkin/base/thread.h"
#include "message.h"
#include "preload.h"
#include "real.h"

#include <string.h>
#include <sys/uio.h>

#define HOLD_MS (int)(INTERACTION_HOLD_NS / 1000000)

static const struct timespec hold_time = {.tv_nsec = INTERACTION_HOLD_NS};

#define IDLE_LOOKS 4 /* so many waits in a row with time-out 0 and no event begin no round */

/* number of waits in a row with time-out 0 and no event */
static __thread unsigned poll_looks __attribute__((tls_model("initial-exec")));

/* Called before a wait. Returns true if the wait is to be split. */
static bool poll_before_wait(bool begins_round)
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
        file_record_deferred();
        holds = interaction_before_wait();
    } else {
        file_drop_deferred();
        interaction_drop_held();
        holds = false;
    }
    preload_leave(saved_errno);
    /* poll_after_idle() blocks signals, which needs system calls */
    return holds && !preload_is_quiet();
}

/*
 * Called after a wait that has not begun a round. is_empty: its time-out was 0, and it has returned
 * no event: the thread has only checked, and continues its work. After more than IDLE_LOOKS such
 * waits in a row, the thread counts as waiting. Any other wait begins a round.
 */
static void poll_after_wait(bool is_empty)
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

/* Called between the two parts of a wait. Returns true with errno EINTR if a signal has arrived: it
 * ends the wait. */
static bool poll_after_idle(void)
{
    sigset_t before;

    blkin_block_signals(&before);
    PRELOAD_INSIDE(interaction_after_idle());
    return server_deliver_signals(&before, false);
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

/* Returns false for an invalid time, too: the real function reports the error. */
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

/* Reads the program's memory, so it is used only if the wait is split. */
#define POLL_REST(timeout) ((timeout) ? (const struct timespec[]){poll_rest_of(timeout)} : NULL)

/* Copies from an address of the program that libc would not read itself. The kernel checks the
 * address: a bad one is an error and no signal. Returns false under a seccomp filter, because many
 * filters forbid that call. */
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

/* ---- the descriptors of a wait ---- */

#define SMALL_COUNT 8

/* Returns true also for sockets that are never traced: of datagrams, or listening ones. */
static bool poll_is_socket(int fd)
{
    if (!preload_is_known(preload_slot(fd)))
        connection_adopt(fd);
    return preload_is_socket(preload_slot(fd));
}

/*
 * Returns true if the thread has waited for at most one accepted connection, beside connections
 * that the program has made: it works for one client. An idle pipe does not count: it may be the
 * one that signals the program's end.
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
            client = connection; /* only for comparison */
        if (connection)
            connection_release(connection);
        if (is_strange)
            return false;
    }
    return true;
}

/* Returns true if the wait was in the middle of a request. */
static bool poll_is_in_request(const struct pollfd *fds, nfds_t count)
{
    bool is_in_request;

    if (preload_is_off())
        return true;
    PRELOAD_INSIDE(is_in_request = poll_is_of_one_client(fds, count));
    return is_in_request;
}

static bool poll_may_sleep(const struct timespec *timeout)
{
    return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

/* ---- the wrappers ---- */

/*
 * The body of a wrapper: the whole call, or a call for INTERACTION_HOLD_NS and one for the rest.
 * is_time: the time-out is not 0. fds: the array of poll(2). The wrapper reads the array after the
 * real call, and only if the array has at most SMALL_COUNT elements: then all may belong to one
 * client.
 */
#define WAIT(is_time, fds, count, is_long, whole_call, call_for_hold, call_for_rest) \
    const bool sleeps = is_time, is_small = (count) <= SMALL_COUNT;                  \
    int result = 0;                                                                  \
                                                                                     \
    if (server_before_wait(false))                                                   \
        return -1;                                                                   \
    if (!poll_before_wait(sleeps && !is_small) || !(is_long)) {                      \
        result = whole_call;                                                         \
    } else if ((result = call_for_hold) == 0) {                                      \
        if (poll_after_idle())                                                       \
            return -1;                                                               \
        result = call_for_rest;                                                      \
    }                                                                                \
    if (result < 0 || (is_small && poll_is_in_request(fds, count)))                  \
        return result;                                                               \
    if (!sleeps || is_small)                                                         \
        poll_after_wait(!sleeps && result == 0);                                     \
    interaction_thread.has_one_event = sleeps && result == 1;                        \
    return result

#define ANY_COUNT (SMALL_COUNT + 1)

PRELOAD_PUBLIC int epoll_ctl(int poll, int operation, int fd, struct epoll_event *event)
{
    const int result = real()->epoll_ctl(poll, operation, fd, event);
    struct connection *connection;
    int saved_errno;

    /* only if the program waits to write: edge-triggered programs register for all events at once
     */
    if (result < 0 || operation == EPOLL_CTL_DEL ||
        (event->events & (EPOLLOUT | EPOLLET)) != EPOLLOUT || !interaction_thread.worker ||
        !preload_is_on() || !(connection = connection_of(preload_slot(fd), 0)))
        return result;
    saved_errno = preload_enter();
    if (connection->role == ROLE_CLIENT)
        called_await_write(connection);
    preload_leave(saved_errno);
    connection_release(connection);
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

/* The real function ends the program if its array is too small. */
PRELOAD_PUBLIC int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    return room / sizeof(*fds) < count ? real()->__poll_chk(fds, count, timeout, room)
                                       : poll(fds, count, timeout);
}

PRELOAD_PUBLIC int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                         const sigset_t *mask)
{
    WAIT(poll_may_sleep(timeout), fds, count, poll_is_long(timeout),
         real()->ppoll(fds, count, timeout, mask), real()->ppoll(fds, count, &hold_time, mask),
         real()->ppoll(fds, count, POLL_REST(timeout), mask));
}

PRELOAD_PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                               const sigset_t *mask, size_t room)
{
    return room / sizeof(*fds) < count ? real()->__ppoll_chk(fds, count, timeout, mask, room)
                                       : ppoll(fds, count, timeout, mask);
}

/* ---- sets: the kernel overwrites the program's sets with its answer ---- */

struct sets {
    size_t size; /* bytes in use */
    fd_set *at[3];
    fd_set copies[3];
};

/* Returns false if the sets are too large or cannot be read: the wait is then not split. */
static bool poll_copy_sets(struct sets *sets, int count, fd_set *readable, fd_set *writable,
                           fd_set *failed)
{
    fd_set *const at[3] = {readable, writable, failed};

    if (count < 0 || count > FD_SETSIZE)
        return false;
    sets->size = ((size_t)count + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    for (int i = 0; i < 3; i++) {
        sets->at[i] = at[i];
        if (at[i] && !poll_copy_from_program(&sets->copies[i], at[i], sets->size))
            return false;
    }
    return true;
}

static void poll_restore_sets(const struct sets *sets)
{
    for (int i = 0; i < 3; i++) {
        if (sets->at[i])
            memcpy(sets->at[i], &sets->copies[i], sets->size);
    }
}

/* Subtracts the elapsed time from the time-out, as select(2) does. */
static void poll_subtract_time(struct timeval *timeout, suseconds_t waited_us)
{
    if (!timeout)
        return;
    timeout->tv_usec -= waited_us;
    if (timeout->tv_usec < 0) {
        timeout->tv_usec += 1000000;
        timeout->tv_sec--;
    }
}

/* Returns false for a negative time, which is an error. More than 10^6 us are valid. */
static bool poll_is_long_timeval(const struct timeval *timeout)
{
    return timeout->tv_sec >= 0 && timeout->tv_usec >= 0 &&
           (timeout->tv_sec > 0 || timeout->tv_usec > (suseconds_t)(INTERACTION_HOLD_NS / 1000));
}

PRELOAD_PUBLIC int select(int count, fd_set *readable, fd_set *writable, fd_set *failed,
                          struct timeval *timeout)
{
    const suseconds_t hold_us = (suseconds_t)(INTERACTION_HOLD_NS / 1000);
    const bool sleeps = !timeout || timeout->tv_sec || timeout->tv_usec;
    struct timeval hold = {.tv_usec = hold_us};
    struct sets sets;
    int result;

    if (server_before_wait(false))
        return -1;
    if (!poll_before_wait(sleeps) || (timeout && !poll_is_long_timeval(timeout)) ||
        !poll_copy_sets(&sets, count, readable, writable, failed)) {
        result = real()->select(count, readable, writable, failed, timeout);
    } else {
        result = real()->select(count, readable, writable, failed, &hold);
        poll_subtract_time(timeout, hold_us - hold.tv_usec);
        if (result == 0) {
            if (poll_after_idle())
                return -1;
            poll_restore_sets(&sets);
            result = real()->select(count, readable, writable, failed, timeout);
        }
    }
    if (result >= 0) {
        if (!sleeps)
            poll_after_wait(result == 0);
        interaction_thread.has_one_event = sleeps && result == 1;
    }
    return result;
}

PRELOAD_PUBLIC int pselect(int count, fd_set *readable, fd_set *writable, fd_set *failed,
                           const struct timespec *timeout, const sigset_t *mask)
{
    struct sets sets;

    WAIT(poll_may_sleep(timeout), NULL, ANY_COUNT,
         poll_is_long(timeout) && poll_copy_sets(&sets, count, readable, writable, failed),
         real()->pselect(count, readable, writable, failed, timeout, mask),
         real()->pselect(count, readable, writable, failed, &hold_time, mask),
         (poll_restore_sets(&sets),
          real()->pselect(count, readable, writable, failed, POLL_REST(timeout), mask)));
}
