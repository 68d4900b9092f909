/*
 * Wrappers of calls that read and write sockets, including those that sockets share with files.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "file.h"
#include "message.h"
#include "preload.h"
#include "real.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

/* ---- common parts ---- */

/* The state of a call on a descriptor, before and after the real call. */
struct socket_call {
    int fd;
    uint32_t generation; /* of the connection; 0: none */
    bool is_on;
    pool_name written; /* the interaction that the call answers; 0: none */
};

/* Called while tracing is off, too: byte counts must be complete for later messages. */
static struct connection *socket_connection_before(struct socket_call *call, int fd)
{
    struct connection *connection = connection_of(preload_slot(fd), 0);

    call->fd = fd;
    call->generation = connection ? pool_generation(&connection->item) : 0;
    return connection;
}

/* Returns true if the descriptor is a socket. Examines an unknown one if is_on. */
static bool socket_is_socket(int fd, bool is_on)
{
    const struct preload_slot *slot = preload_slot(fd);

    if (is_on &&
        (!slot || __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) == PRELOAD_UNKNOWN)) {
        PRELOAD_INSIDE(connection_adopt(fd));
        slot = preload_slot(fd);
    }
    return preload_is_socket(slot);
}

static void socket_begin_read(struct socket_call *call, int fd, bool is_on)
{
    struct connection *connection;

    call->is_on = is_on;
    connection = socket_connection_before(call, fd);
    if (!connection)
        return;
    if (is_on)
        PRELOAD_INSIDE(file_record_deferred(), message_before_read(connection));
    connection_release(connection);
}

static void socket_begin_write(struct socket_call *call, int fd, bool is_on)
{
    struct connection *connection;

    call->is_on = is_on;
    call->written = 0;
    if (!is_on) {
        connection = socket_connection_before(call, fd);
        if (connection)
            connection_release(connection);
        return;
    }
    call->fd = fd;
    call->generation = 0;
    PRELOAD_INSIDE(call->written = message_before_write(preload_slot(fd), fd, &call->generation));
}

/* Returns true if the bytes begin a request that would be recorded if there were rings. */
static bool socket_is_missed(const struct connection *connection, enum direction direction)
{
    const uint8_t before = __atomic_load_n(&connection->direction, __ATOMIC_RELAXED);
    const bool is_request = direction == DIRECTION_IN
                                ? connection->role == ROLE_SERVER && before != DIRECTION_UNSEEN
                                : connection->role == ROLE_CLIENT && before != DIRECTION_OUT;

    return is_request && preload_config()->is_traced && !preload_is_off() &&
           (connection->is_traced || connection->checked_by != preload_config()->generation);
}

/* Called while tracing is off. Counts bytes, and gives up the connection's interactions. */
static void socket_only_count(struct connection *connection, enum direction direction, size_t count)
{
    uint64_t *bytes = direction == DIRECTION_IN ? &connection->received : &connection->sent;

    if (socket_is_missed(connection, direction))
        blkin_missed_();
    (void)connection_add_bytes(bytes, count);
    if (direction == DIRECTION_IN)
        connection_read_unseen(connection);
    else
        __atomic_store_n(&connection->direction, (uint8_t)direction, __ATOMIC_RELAXED);
    if ((__atomic_load_n(&connection->current, __ATOMIC_RELAXED) || file_has_deferred()) &&
        !preload_is_off())
        PRELOAD_INSIDE(file_drop_deferred(), message_give_up_connection(connection));
}

static struct connection *socket_connection_after(const struct socket_call *call)
{
    return call->generation ? connection_of(preload_slot(call->fd), call->generation) : NULL;
}

static ssize_t socket_end_read(const struct socket_call *call, struct bytes head, size_t wanted,
                               ssize_t result)
{
    struct connection *connection;
    int saved_errno;

    if (result < 0 || (result == 0 && wanted == 0))
        return result;
    if (!(connection = socket_connection_after(call))) {
        interaction_clear_heard();
        return result;
    }
    if (!call->is_on) {
        if (result > 0)
            socket_only_count(connection, DIRECTION_IN, (size_t)result);
    } else {
        saved_errno = preload_enter();
        if (head.length > (size_t)result)
            head.length = (size_t)result;
        if (result > 0)
            message_after_read(connection, call->fd, head, (size_t)result);
        else
            message_after_read_end(connection);
        preload_leave(saved_errno);
    }
    connection_release(connection);
    return result;
}

static ssize_t socket_end_write(const struct socket_call *call, struct bytes head, size_t wanted,
                                ssize_t result)
{
    const size_t count = result > 0 ? (size_t)result : 0;
    struct connection *connection;
    int saved_errno;

    if (call->written) {
        saved_errno = preload_enter();
        if (message_after_answer(call->written, count, wanted))
            file_record_deferred();
        preload_leave(saved_errno);
        return result;
    }
    if (!(connection = socket_connection_after(call)))
        return result;
    if (!call->is_on) {
        if (count)
            socket_only_count(connection, DIRECTION_OUT, count);
    } else {
        saved_errno = preload_enter();
        if (head.length > count)
            head.length = count;
        message_after_write(connection, head, count);
        preload_leave(saved_errno);
    }
    connection_release(connection);
    return result;
}

/* ---- vectors ---- */

static struct bytes socket_first_of(const struct iovec *vector, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (vector[i].iov_len)
            return (struct bytes){vector[i].iov_base, vector[i].iov_len};
    }
    return (struct bytes){NULL, 0};
}

/* Collects the first bytes of a request that was sent: varnish sends "GET", " " and the path as
 * separate parts. Reads only bytes that were sent, because other parts may have bad addresses. */
static struct bytes socket_gather_head(const struct iovec *vector, size_t count, ssize_t sent,
                                       char head[PRELOAD_PAYLOAD_MAX])
{
    size_t left = (size_t)sent < PRELOAD_PAYLOAD_MAX ? (size_t)sent : PRELOAD_PAYLOAD_MAX;
    const struct bytes first = socket_first_of(vector, count);
    size_t length = 0;

    if (first.length >= left || first.length >= PREFIX_MAX)
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

static size_t socket_length_of(const struct iovec *vector, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length;
}

#define NO_BYTES           ((struct bytes){NULL, 0})
#define HEAD(buffer, size) ((struct bytes){(buffer), (size)})

/* ---- the wrappers ---- */

/* The body of a wrapper for a socket. Reads the program's memory only after the real call has
 * succeeded, because the kernel has checked the address then. `head` may use socket_result. */
#define READ_CALL(fd, head, wanted, real_call)                                                 \
    do {                                                                                       \
        struct socket_call socket_call;                                                        \
        ssize_t socket_result;                                                                 \
                                                                                               \
        socket_begin_read(&socket_call, fd, is_on);                                            \
        socket_result = real_call;                                                             \
        return socket_result < 0 ? socket_result                                               \
                                 : socket_end_read(&socket_call, head, wanted, socket_result); \
    } while (0)

#define WRITE_CALL(fd, head, wanted, real_call)                                                 \
    do {                                                                                        \
        struct socket_call socket_call;                                                         \
        ssize_t socket_result;                                                                  \
                                                                                                \
        socket_begin_write(&socket_call, fd, is_on);                                            \
        socket_result = real_call;                                                              \
        return socket_result < 0 ? socket_end_write(&socket_call, NO_BYTES, 1, socket_result)   \
                                 : socket_end_write(&socket_call, head, wanted, socket_result); \
    } while (0)

/* The body of a wrapper for sockets and files. */
#define READ_ANY(name, fd, head, wanted, real_call)            \
    const bool is_on = preload_is_on();                        \
                                                               \
    if (!socket_is_socket(fd, is_on)) {                        \
        interaction_clear_heard(); /* for example of a pipe */ \
        FILE_CALL(is_on, fd, name, FILE_READ, -1, real_call);  \
    }                                                          \
    READ_CALL(fd, head, wanted, real_call)

#define WRITE_ANY(name, fd, head, wanted, real_call)           \
    const bool is_on = preload_is_on();                        \
                                                               \
    if (!socket_is_socket(fd, is_on))                          \
        FILE_CALL(is_on, fd, name, FILE_WRITE, -1, real_call); \
    WRITE_CALL(fd, head, wanted, real_call)

/* The flags of reads that take no bytes out of the stream. Out-of-band data is not in the
 * stream. */
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)

/* With MSG_TRUNC, the kernel discards the bytes. */
#define RECEIVED(buffer, size, flags) (flags & MSG_TRUNC ? NO_BYTES : HEAD(buffer, size))

/* The body of a wrapper that reads from sockets only. */
#define RECEIVE(fd, buffer, size, flags, real_call)        \
    const bool is_on = preload_is_on();                    \
                                                           \
    if (flags & NOT_TAKEN || !socket_is_socket(fd, is_on)) \
        return real_call;                                  \
    READ_CALL(fd, RECEIVED(buffer, size, flags), size, real_call)

PRELOAD_PUBLIC ssize_t read(int fd, void *buffer, size_t size)
{
    READ_ANY("read", fd, HEAD(buffer, size), size, real()->read(fd, buffer, size));
}

PRELOAD_PUBLIC ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    READ_ANY("read", fd, HEAD(buffer, size), size, real()->__read_chk(fd, buffer, size, room));
}

PRELOAD_PUBLIC ssize_t write(int fd, const void *buffer, size_t size)
{
    WRITE_ANY("write", fd, HEAD(buffer, size), size, real()->write(fd, buffer, size));
}

PRELOAD_PUBLIC ssize_t readv(int fd, const struct iovec *vector, int count)
{
    READ_ANY("readv", fd, socket_first_of(vector, (size_t)count),
             socket_length_of(vector, (size_t)count), real()->readv(fd, vector, count));
}

PRELOAD_PUBLIC ssize_t writev(int fd, const struct iovec *vector, int count)
{
    char head[PRELOAD_PAYLOAD_MAX];

    WRITE_ANY("writev", fd, socket_gather_head(vector, (size_t)count, socket_result, head),
              socket_length_of(vector, (size_t)count), real()->writev(fd, vector, count));
}

PRELOAD_PUBLIC ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    RECEIVE(fd, buffer, size, flags, real()->recv(fd, buffer, size, flags));
}

PRELOAD_PUBLIC ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
    RECEIVE(fd, buffer, size, flags, real()->__recv_chk(fd, buffer, size, room, flags));
}

PRELOAD_PUBLIC ssize_t recvfrom(int fd, void *buffer, size_t size, int flags,
                                struct sockaddr *address, socklen_t *length)
{
    RECEIVE(fd, buffer, size, flags, real()->recvfrom(fd, buffer, size, flags, address, length));
}

PRELOAD_PUBLIC ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
                                      struct sockaddr *address, socklen_t *length)
{
    RECEIVE(fd, buffer, size, flags,
            real()->__recvfrom_chk(fd, buffer, size, room, flags, address, length));
}

/* Calls tell() for each descriptor in a message. The kernel has checked its pointers. */
static void socket_for_each_passed(const struct msghdr *message, void (*tell)(int fd))
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

/*
 * Called after a message was sent or received. tell: connection_forget() for a received descriptor,
 * which is new; connection_shared() for a sent one, which another process then shares.
 */
static inline void socket_tell_passed(const struct msghdr *message, ssize_t result,
                                      void (*tell)(int fd))
{
    if (result >= 0 && message->msg_controllen && !preload_is_off())
        socket_for_each_passed(message, tell);
}

static struct bytes socket_received_by(const struct msghdr *message, int flags)
{
    return flags & MSG_TRUNC ? NO_BYTES : socket_first_of(message->msg_iov, message->msg_iovlen);
}

PRELOAD_PUBLIC ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const bool is_on = preload_is_on();
    const bool is_stream = !(flags & NOT_TAKEN) && socket_is_socket(fd, is_on);
    struct socket_call call = {0};
    ssize_t result;

    if (is_stream)
        socket_begin_read(&call, fd, is_on);
    result = real()->recvmsg(fd, message, flags);
    socket_tell_passed(message, result, connection_forget);
    if (!is_stream || result < 0)
        return result;
    return socket_end_read(&call, socket_received_by(message, flags),
                           socket_length_of(message->msg_iov, message->msg_iovlen), result);
}

PRELOAD_PUBLIC int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                            struct timespec *timeout)
{
    const bool is_on = preload_is_on();
    const bool is_stream = !(flags & NOT_TAKEN) && socket_is_socket(fd, is_on);
    struct socket_call call = {0};
    int result;

    if (is_stream)
        socket_begin_read(&call, fd, is_on);
    result = real()->recvmmsg(fd, messages, count, flags, timeout);
    for (int i = 0; i < result; i++) {
        socket_tell_passed(&messages[i].msg_hdr, 0, connection_forget);
        if (is_stream)
            (void)socket_end_read(&call, socket_received_by(&messages[i].msg_hdr, flags), 1,
                                  (ssize_t)messages[i].msg_len);
    }
    return result;
}

/* With MSG_MORE, returns more than the size, so that the write counts as incomplete. */
static inline size_t socket_with_more(size_t size, int flags)
{
    return size + (flags & MSG_MORE ? 1 : 0);
}

PRELOAD_PUBLIC ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
    const bool is_on = preload_is_on();

    if (flags & MSG_OOB || !socket_is_socket(fd, is_on))
        return real()->send(fd, buffer, size, flags);
    WRITE_CALL(fd, HEAD(buffer, size), socket_with_more(size, flags),
               real()->send(fd, buffer, size, flags));
}

/* Called before TCP Fast Open, which connects and sends. */
static void socket_connect_by_send(int fd, const struct sockaddr *address, socklen_t length,
                                   bool is_on)
{
    if (address && !preload_is_off())
        PRELOAD_INSIDE(called_connect(fd, address, length, is_on));
}

PRELOAD_PUBLIC ssize_t sendto(int fd, const void *buffer, size_t size, int flags,
                              const struct sockaddr *address, socklen_t length)
{
    const bool is_on = preload_is_on();

    if (flags & MSG_FASTOPEN)
        socket_connect_by_send(fd, address, length, is_on);
    if (flags & MSG_OOB || !socket_is_socket(fd, is_on))
        return real()->sendto(fd, buffer, size, flags, address, length);
    WRITE_CALL(fd, HEAD(buffer, size), socket_with_more(size, flags),
               real()->sendto(fd, buffer, size, flags, address, length));
}

static inline ssize_t socket_send_message(int fd, const struct msghdr *message, int flags)
{
    const ssize_t result = real()->sendmsg(fd, message, flags);

    socket_tell_passed(message, result, connection_shared);
    return result;
}

static inline int socket_send_messages(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    const int result = real()->sendmmsg(fd, messages, count, flags);

    for (int i = 0; i < result; i++)
        socket_tell_passed(&messages[i].msg_hdr, 0, connection_shared);
    return result;
}

PRELOAD_PUBLIC ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const bool is_on = preload_is_on();
    char head[PRELOAD_PAYLOAD_MAX];

    if (flags & MSG_FASTOPEN)
        socket_connect_by_send(fd, message->msg_name, message->msg_namelen, is_on);
    if (flags & MSG_OOB || !socket_is_socket(fd, is_on))
        return socket_send_message(fd, message, flags);
    WRITE_CALL(fd, socket_gather_head(message->msg_iov, message->msg_iovlen, socket_result, head),
               socket_with_more(socket_length_of(message->msg_iov, message->msg_iovlen), flags),
               socket_send_message(fd, message, flags));
}

static size_t socket_sum_of(const struct mmsghdr *messages, int count)
{
    size_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += messages[i].msg_len;
    return sum;
}

PRELOAD_PUBLIC int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    const bool is_on = preload_is_on();
    struct socket_call call;
    int result;
    size_t sent;

    if (flags & MSG_OOB || !socket_is_socket(fd, is_on))
        return socket_send_messages(fd, messages, count, flags);
    socket_begin_write(&call, fd, is_on);
    result = socket_send_messages(fd, messages, count, flags);
    if (result <= 0) {
        (void)socket_end_write(&call, NO_BYTES, 1, -1);
        return result;
    }
    sent = socket_sum_of(messages, result);
    (void)socket_end_write(
        &call, socket_first_of(messages[0].msg_hdr.msg_iov, messages[0].msg_hdr.msg_iovlen),
        socket_with_more(sent, (unsigned)result == count ? flags : MSG_MORE), (ssize_t)sent);
    return result;
}

/* The read of the file is a file call; the write to the socket is a message. */
PRELOAD_PUBLIC ssize_t sendfile(int to, int from, off_t *offset, size_t count)
{
    const bool is_on = preload_is_on();
    const bool is_stream = socket_is_socket(to, is_on);
    struct socket_call call = {0};
    struct file_call file_call;
    const bool is_file_call = is_on && file_call_begin(&file_call, from, "sendfile", FILE_READ);
    ssize_t result;

    if (is_stream)
        socket_begin_write(&call, to, is_on);
    result = real()->sendfile(to, from, offset, count);
    if (is_file_call)
        file_call_end(&file_call, result, offset && result >= 0 ? *offset - result : -1);
    return is_stream ? socket_end_write(&call, NO_BYTES, result < 0 ? 1 : count, result) : result;
}
PRELOAD_ALIAS(sendfile64, sendfile);

PRELOAD_PUBLIC ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                              size_t count, unsigned flags)
{
    const bool is_on = preload_is_on();
    const bool is_from = preload_is_socket(preload_slot(from));
    const bool is_to = preload_is_socket(preload_slot(to));
    struct socket_call in = {0}, out = {0};
    ssize_t result;

    if (is_from)
        socket_begin_read(&in, from, is_on);
    if (is_to)
        socket_begin_write(&out, to, is_on);
    result = real()->splice(from, from_offset, to, to_offset, count, flags);
    if (is_from && result >= 0)
        (void)socket_end_read(&in, NO_BYTES, count, result);
    /* complete whatever `count` was: the caller asked for the content of the pipe */
    if (is_to)
        (void)socket_end_write(&out, NO_BYTES, result < 0 ? 1 : (size_t)result, result);
    return result;
}

/* ---- stdio(3) ---- */

/* Programs such as exim write by stdio(3), which calls libc's internal write. The library does not
 * see when libc flushes a full buffer. */
PRELOAD_PUBLIC int fflush(FILE *stream)
{
    const size_t wanted = stream ? __fpending(stream) : 0;
    const int saved_errno = errno;
    const int fd = wanted ? fileno(stream) : -1;
    struct socket_call call;
    int result;

    errno = saved_errno;
    if (fd < 0 || !socket_is_socket(fd, preload_is_on()))
        return real()->fflush(stream);
    socket_begin_write(&call, fd, preload_is_on());
    result = real()->fflush(stream);
    (void)socket_end_write(&call, NO_BYTES, wanted, (ssize_t)(wanted - __fpending(stream)));
    return result;
}
