/*
 * Wrappers of the calls of sockets, and of those that sockets share with files.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"
#include "interaction.h"
#include "libblkin/process/loader.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <linux/close_range.h>
#include <string.h>

/* ---- what is common to all that read or write ---- */

/* A call on a descriptor, between its two sides. */
struct socket_call {
    int fd;
    uint32_t generation; /* of the connection; 0: there is none */
    bool is_on;
    pool_name written; /* the interaction that is written to; 0: none */
};

/* Also while nobody looks: a message that is told later has its place among all bytes. */
static struct connection *connection_before(struct socket_call *call, int fd)
{
    struct connection *connection = connection_of(preload_slot(fd), 0);

    call->fd = fd;
    call->generation = connection ? pool_generation(&connection->item) : 0;
    return connection;
}

/* Looks the descriptor up, and at it if nothing is known of it. */
static bool is_socket(int fd, bool is_on)
{
    const struct preload_slot *slot = preload_slot(fd);

    if (is_on &&
        (!slot || __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) == PRELOAD_UNKNOWN)) {
        const int saved_errno = preload_enter();

        connection_adopt(fd);
        preload_leave(saved_errno);
        slot = preload_slot(fd);
    }
    return preload_is_socket(slot);
}

static void begin_read(struct socket_call *call, int fd, bool is_on)
{
    struct connection *connection;
    int saved_errno;

    call->is_on = is_on;
    connection = connection_before(call, fd);
    if (!connection)
        return;
    if (is_on) {
        saved_errno = preload_enter();
        interaction_before_read(connection);
        preload_leave(saved_errno);
    }
    connection_let_go(connection);
}

static void begin_write(struct socket_call *call, int fd, bool is_on)
{
    struct connection *connection;
    int saved_errno;

    call->is_on = is_on;
    call->written = 0;
    connection = connection_before(call, fd);
    if (!connection)
        return;
    if (is_on) {
        saved_errno = preload_enter();
        call->written = interaction_before_write(connection, fd);
        preload_leave(saved_errno);
    }
    connection_let_go(connection);
}

static bool is_any_later(void)
{
    return preload_thread.thread && file_is_any_later(preload_thread.thread->later);
}

/* Nobody looks: where it is in the streams is all that is kept. */
static void only_count(struct connection *connection, enum direction direction, size_t count)
{
    uint64_t *bytes = direction == DIRECTION_IN ? &connection->received : &connection->sent;

    (void)__atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
    if (direction == DIRECTION_IN)
        connection_read_unseen(connection);
    else
        __atomic_store_n(&connection->direction, (uint8_t)direction, __ATOMIC_RELAXED);
    if ((__atomic_load_n(&connection->open, __ATOMIC_RELAXED) || is_any_later()) &&
        !preload_is_off()) {
        const int saved_errno = preload_enter();

        interaction_abandon(connection);
        preload_leave(saved_errno);
    }
}

static struct connection *connection_after(const struct socket_call *call)
{
    return call->generation ? connection_of(preload_slot(call->fd), call->generation) : NULL;
}

static ssize_t end_read(const struct socket_call *call, struct bytes head, size_t wanted,
                        ssize_t result)
{
    struct connection *connection;
    int saved_errno;

    if (result < 0 || (result == 0 && wanted == 0) || !(connection = connection_after(call)))
        return result;
    if (!call->is_on) {
        if (result > 0)
            only_count(connection, DIRECTION_IN, (size_t)result);
    } else {
        saved_errno = preload_enter();
        if (head.length > (size_t)result)
            head.length = (size_t)result;
        if (result > 0)
            interaction_has_read(connection, call->fd, head, (size_t)result);
        else
            interaction_has_read_end(connection);
        preload_leave(saved_errno);
    }
    connection_let_go(connection);
    return result;
}

static ssize_t end_write(const struct socket_call *call, struct bytes head, size_t wanted,
                         ssize_t result)
{
    const size_t count = result > 0 ? (size_t)result : 0;
    struct connection *connection;
    int saved_errno;

    if (!(connection = connection_after(call))) {
        if (call->is_on && call->written) {
            saved_errno = preload_enter();
            interaction_has_written_last(call->written, count, wanted);
            preload_leave(saved_errno);
        }
        return result;
    }
    if (!call->is_on) {
        if (count)
            only_count(connection, DIRECTION_OUT, count);
    } else {
        saved_errno = preload_enter();
        if (head.length > count)
            head.length = count;
        interaction_has_written(connection, call->written, head, count, wanted);
        preload_leave(saved_errno);
    }
    connection_let_go(connection);
    return result;
}

/* ---- vectors ---- */

static struct bytes first_of(const struct iovec *vector, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (vector[i].iov_len)
            return (struct bytes){vector[i].iov_base, vector[i].iov_len};
    }
    return (struct bytes){NULL, 0};
}

/*
 * The same of a request that was sent: varnish sends "GET", " " and the path as vectors of their
 * own. No vector is looked at of which nothing was sent: it may be no address.
 */
static struct bytes gathered(const struct iovec *vector, size_t count, ssize_t sent,
                             char head[PRELOAD_PAYLOAD_MAX])
{
    size_t left = (size_t)sent < PRELOAD_PAYLOAD_MAX ? (size_t)sent : PRELOAD_PAYLOAD_MAX;
    const struct bytes first = first_of(vector, count);
    size_t length = 0;

    if (first.length >= left || first.length >= PREFIX_KEPT)
        return first;
    for (size_t i = 0; i < count && left; i++) {
        const size_t part = vector[i].iov_len < left ? vector[i].iov_len : left;

        if (part)
            memcpy(head + length, vector[i].iov_base, part);
        length += part;
        left -= part;
    }
    return (struct bytes){head, length};
}

static size_t length_of(const struct iovec *vector, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length;
}

#define NO_BYTES           ((struct bytes){NULL, 0})
#define HEAD(buffer, size) ((struct bytes){(buffer), (size)})

/* ---- the wrappers ---- */

/* The rest of a call that may be one of files, too, if it is not of a socket. */
#define FILE_CALL(name, fd, real_call)                        \
    do {                                                      \
        struct file_call file_call;                           \
        ssize_t file_result;                                  \
                                                              \
        if (!is_on || !file_call_begin(&file_call, fd, name)) \
            return real_call;                                 \
        file_result = real_call;                              \
        file_call_end(&file_call, file_result, -1);           \
        return file_result;                                   \
    } while (0)

/*
 * The same of a socket. What the program points at is looked at after the real call, and only if
 * that has not failed: what is no address is for the kernel to find out. The head of what is
 * written may depend on socket_result.
 */
#define READ_CALL(fd, head, wanted, real_call)                                          \
    do {                                                                                \
        struct socket_call socket_call;                                                 \
        ssize_t socket_result;                                                          \
                                                                                        \
        begin_read(&socket_call, fd, is_on);                                            \
        socket_result = real_call;                                                      \
        return socket_result < 0 ? socket_result                                        \
                                 : end_read(&socket_call, head, wanted, socket_result); \
    } while (0)

#define WRITE_CALL(fd, head, wanted, real_call)                                          \
    do {                                                                                 \
        struct socket_call socket_call;                                                  \
        ssize_t socket_result;                                                           \
                                                                                         \
        begin_write(&socket_call, fd, is_on);                                            \
        socket_result = real_call;                                                       \
        return socket_result < 0 ? end_write(&socket_call, NO_BYTES, 1, socket_result)   \
                                 : end_write(&socket_call, head, wanted, socket_result); \
    } while (0)

PRELOAD_PUBLIC ssize_t read(int fd, void *buffer, size_t size)
{
    const bool is_on = preload_is_on();

    if (!is_socket(fd, is_on))
        FILE_CALL("read", fd, real()->read(fd, buffer, size));
    READ_CALL(fd, HEAD(buffer, size), size, real()->read(fd, buffer, size));
}

PRELOAD_PUBLIC ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    const bool is_on = preload_is_on();

    if (!is_socket(fd, is_on))
        FILE_CALL("read", fd, real()->__read_chk(fd, buffer, size, room));
    READ_CALL(fd, HEAD(buffer, size), size, real()->__read_chk(fd, buffer, size, room));
}

PRELOAD_PUBLIC ssize_t write(int fd, const void *buffer, size_t size)
{
    const bool is_on = preload_is_on();

    if (!is_socket(fd, is_on))
        FILE_CALL("write", fd, real()->write(fd, buffer, size));
    WRITE_CALL(fd, HEAD(buffer, size), size, real()->write(fd, buffer, size));
}

PRELOAD_PUBLIC ssize_t readv(int fd, const struct iovec *vector, int count)
{
    const bool is_on = preload_is_on();

    if (!is_socket(fd, is_on))
        FILE_CALL("readv", fd, real()->readv(fd, vector, count));
    READ_CALL(fd, first_of(vector, (size_t)count), length_of(vector, (size_t)count),
              real()->readv(fd, vector, count));
}

PRELOAD_PUBLIC ssize_t writev(int fd, const struct iovec *vector, int count)
{
    const bool is_on = preload_is_on();
    char head[PRELOAD_PAYLOAD_MAX];

    if (!is_socket(fd, is_on))
        FILE_CALL("writev", fd, real()->writev(fd, vector, count));
    WRITE_CALL(fd, gathered(vector, (size_t)count, socket_result, head),
               length_of(vector, (size_t)count), real()->writev(fd, vector, count));
}

/* Reads that do not take bytes out of the stream; out-of-band data is not in it. */
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)

/* MSG_TRUNC: the bytes are thrown away. */
#define RECEIVED(buffer, size, flags) (flags & MSG_TRUNC ? NO_BYTES : HEAD(buffer, size))

PRELOAD_PUBLIC ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    const bool is_on = preload_is_on();

    if (flags & NOT_TAKEN || !is_socket(fd, is_on))
        return real()->recv(fd, buffer, size, flags);
    READ_CALL(fd, RECEIVED(buffer, size, flags), size, real()->recv(fd, buffer, size, flags));
}

PRELOAD_PUBLIC ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
    const bool is_on = preload_is_on();

    if (flags & NOT_TAKEN || !is_socket(fd, is_on))
        return real()->__recv_chk(fd, buffer, size, room, flags);
    READ_CALL(fd, RECEIVED(buffer, size, flags), size,
              real()->__recv_chk(fd, buffer, size, room, flags));
}

PRELOAD_PUBLIC ssize_t recvfrom(int fd, void *buffer, size_t size, int flags,
                                struct sockaddr *address, socklen_t *length)
{
    const bool is_on = preload_is_on();

    if (flags & NOT_TAKEN || !is_socket(fd, is_on))
        return real()->recvfrom(fd, buffer, size, flags, address, length);
    READ_CALL(fd, RECEIVED(buffer, size, flags), size,
              real()->recvfrom(fd, buffer, size, flags, address, length));
}

PRELOAD_PUBLIC ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
                                      struct sockaddr *address, socklen_t *length)
{
    const bool is_on = preload_is_on();

    if (flags & NOT_TAKEN || !is_socket(fd, is_on))
        return real()->__recvfrom_chk(fd, buffer, size, room, flags, address, length);
    READ_CALL(fd, RECEIVED(buffer, size, flags), size,
              real()->__recvfrom_chk(fd, buffer, size, room, flags, address, length));
}

/* After the call, as who knows before what the pointers are. */
static void for_each_passed(const struct msghdr *message, void (*tell)(int fd))
{
    struct msghdr copy = *message;
    const int saved_errno = preload_enter();

    for (struct cmsghdr *control = CMSG_FIRSTHDR(&copy); control;
         control = CMSG_NXTHDR(&copy, control)) {
        const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int passed;

            memcpy(&passed, CMSG_DATA(control) + i * sizeof(int), sizeof(passed));
            tell(passed);
        }
    }
    preload_leave(saved_errno);
}

/* Descriptors that came in a message are new: what had their numbers was closed. */
static inline void look_for_passed(const struct msghdr *message, ssize_t result)
{
    if (result >= 0 && message->msg_controllen && !preload_is_off())
        for_each_passed(message, connection_forget);
}

/* And those that went are another process's, too. */
static inline void look_for_given(const struct msghdr *message, ssize_t result)
{
    if (result >= 0 && message->msg_controllen && !preload_is_off())
        for_each_passed(message, connection_shared);
}

static struct bytes received_by(const struct msghdr *message, int flags)
{
    return flags & MSG_TRUNC ? NO_BYTES : first_of(message->msg_iov, message->msg_iovlen);
}

PRELOAD_PUBLIC ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const bool is_on = preload_is_on();
    const bool is_stream = !(flags & NOT_TAKEN) && is_socket(fd, is_on);
    struct socket_call call = {0};
    ssize_t result;

    if (is_stream)
        begin_read(&call, fd, is_on);
    result = real()->recvmsg(fd, message, flags);
    look_for_passed(message, result);
    if (!is_stream || result < 0)
        return result;
    return end_read(&call, received_by(message, flags),
                    length_of(message->msg_iov, message->msg_iovlen), result);
}

static size_t sum_of(const struct mmsghdr *messages, int count)
{
    size_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += messages[i].msg_len;
    return sum;
}

PRELOAD_PUBLIC int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                            struct timespec *timeout)
{
    const bool is_on = preload_is_on();
    const bool is_stream = !(flags & NOT_TAKEN) && is_socket(fd, is_on);
    struct socket_call call = {0};
    int result;

    if (is_stream)
        begin_read(&call, fd, is_on);
    result = real()->recvmmsg(fd, messages, count, flags, timeout);
    for (int i = 0; i < result; i++)
        look_for_passed(&messages[i].msg_hdr, 0);
    if (is_stream && result > 0)
        (void)end_read(&call, received_by(&messages[0].msg_hdr, flags), 1,
                       (ssize_t)sum_of(messages, result));
    return result;
}

/* That it sends more at once is as if it had wanted to. */
static inline size_t with_more(size_t size, int flags)
{
    return size + (flags & MSG_MORE ? 1 : 0);
}

PRELOAD_PUBLIC ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
    const bool is_on = preload_is_on();

    if (flags & MSG_OOB || !is_socket(fd, is_on))
        return real()->send(fd, buffer, size, flags);
    WRITE_CALL(fd, HEAD(buffer, size), with_more(size, flags),
               real()->send(fd, buffer, size, flags));
}

static void connecting(int fd, const struct sockaddr *address, socklen_t length)
{
    const bool is_on = preload_is_on();
    int saved_errno;
    struct connection *connection;

    if (preload_is_off())
        return;
    saved_errno = preload_enter();
    if (connection_connecting(fd, address, length) && is_on &&
        (connection = connection_of(preload_slot(fd), 0))) {
        interaction_connects(connection);
        connection_let_go(connection);
    }
    preload_leave(saved_errno);
}

/* TCP Fast Open: sends with what connects. */
static inline bool connects(const struct sockaddr *address, int flags)
{
    return flags & MSG_FASTOPEN && address;
}

PRELOAD_PUBLIC ssize_t sendto(int fd, const void *buffer, size_t size, int flags,
                              const struct sockaddr *address, socklen_t length)
{
    const bool is_on = preload_is_on();

    if (connects(address, flags))
        connecting(fd, address, length);
    if (flags & MSG_OOB || !is_socket(fd, is_on))
        return real()->sendto(fd, buffer, size, flags, address, length);
    WRITE_CALL(fd, HEAD(buffer, size), with_more(size, flags),
               real()->sendto(fd, buffer, size, flags, address, length));
}

static inline ssize_t send_message(int fd, const struct msghdr *message, int flags)
{
    const ssize_t result = real()->sendmsg(fd, message, flags);

    look_for_given(message, result);
    return result;
}

static inline int send_messages(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    const int result = real()->sendmmsg(fd, messages, count, flags);

    for (int i = 0; i < result; i++)
        look_for_given(&messages[i].msg_hdr, 0);
    return result;
}

PRELOAD_PUBLIC ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const bool is_on = preload_is_on();
    char head[PRELOAD_PAYLOAD_MAX];

    if (flags & MSG_OOB || !is_socket(fd, is_on))
        return send_message(fd, message, flags);
    WRITE_CALL(fd, gathered(message->msg_iov, message->msg_iovlen, socket_result, head),
               with_more(length_of(message->msg_iov, message->msg_iovlen), flags),
               send_message(fd, message, flags));
}

PRELOAD_PUBLIC int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    const bool is_on = preload_is_on();
    struct socket_call call;
    int result;
    size_t sent;

    if (flags & MSG_OOB || !is_socket(fd, is_on))
        return send_messages(fd, messages, count, flags);
    begin_write(&call, fd, is_on);
    result = send_messages(fd, messages, count, flags);
    if (result <= 0) {
        (void)end_write(&call, NO_BYTES, 1, -1);
        return result;
    }
    sent = sum_of(messages, result);
    (void)end_write(&call, first_of(messages[0].msg_hdr.msg_iov, messages[0].msg_hdr.msg_iovlen),
                    with_more(sent, (unsigned)result == count ? flags : MSG_MORE), (ssize_t)sent);
    return result;
}

/* The file's side is told to file.h, the socket's here. */
#define SENDFILE(function)                                                                      \
    PRELOAD_PUBLIC ssize_t function(int to, int from, off_t *offset, size_t count)              \
    {                                                                                           \
        const bool is_on = preload_is_on();                                                     \
        const bool is_stream = is_socket(to, is_on);                                            \
        struct socket_call call = {0};                                                          \
        struct file_call file_call;                                                             \
        const bool is_file_call = is_on && file_call_begin(&file_call, from, "sendfile");       \
        ssize_t result;                                                                         \
                                                                                                \
        if (is_stream)                                                                          \
            begin_write(&call, to, is_on);                                                      \
        result = real()->function(to, from, offset, count);                                     \
        if (is_file_call)                                                                       \
            file_call_end(&file_call, result, offset &&result >= 0 ? *offset - result : -1);    \
        return is_stream ? end_write(&call, NO_BYTES, result < 0 ? 1 : count, result) : result; \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

PRELOAD_PUBLIC ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                              size_t count, unsigned flags)
{
    const bool is_on = preload_is_on();
    const bool is_from = preload_is_socket(preload_slot(from));
    const bool is_to = preload_is_socket(preload_slot(to));
    struct socket_call in = {0}, out = {0};
    ssize_t result;

    if (is_from)
        begin_read(&in, from, is_on);
    if (is_to)
        begin_write(&out, to, is_on);
    result = real()->splice(from, from_offset, to, to_offset, count, flags);
    if (is_from && result >= 0)
        (void)end_read(&in, NO_BYTES, count, result);
    /* what was wanted is what the pipe had: count is the most that it may have */
    if (is_to)
        (void)end_write(&out, NO_BYTES, result < 0 ? 1 : (size_t)result, result);
    return result;
}

/* ---- descriptors come and go ---- */

static int accepted(int fd)
{
    if (fd >= 0 && !preload_is_off()) {
        const int saved_errno = preload_enter();

        connection_accepted(fd);
        preload_leave(saved_errno);
    }
    return fd;
}

static void waits(void)
{
    preload_before_wait();
    if (preload_thread.thread && preload_is_on()) {
        const int saved_errno = preload_enter();

        interaction_waits();
        preload_leave(saved_errno);
    }
}

PRELOAD_PUBLIC int listen(int fd, int length)
{
    static bool was_new;
    const int result = real()->listen(fd, length);

    if (result == 0 && !__atomic_exchange_n(&was_new, true, __ATOMIC_ACQ_REL))
        __atomic_store_n(&preload_is_new_server, true, __ATOMIC_RELEASE);
    return result;
}

PRELOAD_PUBLIC int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    waits();
    return accepted(real()->accept(fd, address, length));
}

PRELOAD_PUBLIC int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    waits();
    return accepted(real()->accept4(fd, address, length, flags));
}

/* Told afterwards, when the kernel has found that the address is one. */
PRELOAD_PUBLIC int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    const int result = real()->connect(fd, address, length);

    if (result == 0 || errno == EINPROGRESS || errno == EINTR)
        connecting(fd, address, length);
    return result;
}

/* What is known of descriptors that the kernel has given out is that of others, long closed. */
static void is_new(int fd)
{
    if (fd >= 0 && !preload_is_off()) {
        const int saved_errno = preload_enter();

        connection_forget(fd);
        preload_leave(saved_errno);
    }
}

PRELOAD_PUBLIC int socket(int domain, int type, int protocol)
{
    const int fd = real()->socket(domain, type, protocol);

    is_new(fd);
    return fd;
}

PRELOAD_PUBLIC int socketpair(int domain, int type, int protocol, int fds[2])
{
    const int result = real()->socketpair(domain, type, protocol, fds);

    if (result == 0) {
        is_new(fds[0]);
        is_new(fds[1]);
    }
    return result;
}

/* Before the real call: after it, the number may be another thread's. */
static void closes(int fd)
{
    if (preload_is_known(preload_slot(fd)))
        is_new(fd);
}

/* LTTng's is none of the program's: as if there were no such number. */
PRELOAD_PUBLIC int close(int fd)
{
    if (fd >= 0 && blkin_lttng_descriptor_((unsigned)fd, (unsigned)fd) >= 0) {
        errno = EBADF;
        return -1;
    }
    closes(fd);
    return real()->close(fd);
}

static void closes_range(unsigned first, unsigned last)
{
    int saved_errno;

    if (preload_is_off() || first > last || !preload_is_own_process())
        return;
    saved_errno = preload_enter();
    connection_forget_range(first, last);
    preload_leave(saved_errno);
}

/* All but LTTng's, which an exec closes anyway. */
static int close_around(unsigned first, unsigned last, int flags)
{
    int lttngs;

    if (flags & CLOSE_RANGE_CLOEXEC)
        return real()->close_range(first, last, flags);
    for (; (lttngs = blkin_lttng_descriptor_(first, last)) >= 0; first = (unsigned)lttngs + 1) {
        if ((unsigned)lttngs > first) {
            if (real()->close_range(first, (unsigned)lttngs - 1, flags) < 0)
                return -1;
            flags = 0; /* CLOSE_RANGE_UNSHARE is done */
        }
        if ((unsigned)lttngs == last)
            return 0;
    }
    return real()->close_range(first, last, flags);
}

PRELOAD_PUBLIC int close_range(unsigned first, unsigned last, int flags)
{
    if (!real()->close_range) {
        errno = ENOSYS;
        return -1;
    }
    if (!(flags & (CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE)))
        closes_range(first, last);
    return close_around(first, last, flags);
}

PRELOAD_PUBLIC void closefrom(int first)
{
    closes_range(first > 0 ? (unsigned)first : 0, INT_MAX);
    if (real()->close_range && close_around(first > 0 ? (unsigned)first : 0, UINT_MAX, 0) == 0)
        return;
    if (real()->closefrom)
        real()->closefrom(first);
}

static int duplicated(int from, int to)
{
    if (to >= 0 && to != from && !preload_is_off() &&
        (preload_is_known(preload_slot(from)) || preload_is_known(preload_slot(to))) &&
        preload_is_own_process()) {
        const int saved_errno = preload_enter();

        connection_duplicated(from, to);
        preload_leave(saved_errno);
    }
    return to;
}

PRELOAD_PUBLIC int dup(int fd)
{
    return duplicated(fd, real()->dup(fd));
}

PRELOAD_PUBLIC int dup2(int from, int to)
{
    return duplicated(from, real()->dup2(from, to));
}

PRELOAD_PUBLIC int dup3(int from, int to, int flags)
{
    return duplicated(from, real()->dup3(from, to, flags));
}

/* The third argument is a number or a pointer, and may be missing: passed on as it came. */
#define FCNTL(function)                                       \
    PRELOAD_PUBLIC int function(int fd, int command, ...)     \
    {                                                         \
        va_list arguments;                                    \
        void *argument;                                       \
        int result;                                           \
                                                              \
        va_start(arguments, command);                         \
        argument = va_arg(arguments, void *);                 \
        va_end(arguments);                                    \
        result = real()->function(fd, command, argument);     \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
            (void)duplicated(fd, result);                     \
        return result;                                        \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

/* Nothing more is sent: a response is complete. */
PRELOAD_PUBLIC int shutdown(int fd, int how)
{
    if (preload_is_on() && how != SHUT_RD) {
        struct connection *connection = connection_of(preload_slot(fd), 0);

        if (connection) {
            const int saved_errno = preload_enter();

            interaction_stops_sending(connection);
            preload_leave(saved_errno);
            connection_let_go(connection);
        }
    }
    return real()->shutdown(fd, how);
}

/* Not exit(3), which calls at_exit() of thread.c. */
PRELOAD_PUBLIC void _exit(int status)
{
    if (preload_thread.thread && !preload_is_off() && preload_is_own_process()) {
        (void)preload_enter();
        interaction_flush_all();
        thread_print_counts();
    }
    real()->_exit(status);
    __builtin_unreachable();
}

PRELOAD_PUBLIC void _Exit(int status)
{
    _exit(status);
}
