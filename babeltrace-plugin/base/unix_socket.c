/* SPDX-License-Identifier: BSD-2-Clause */
#include "unix_socket.h"

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool unix_socket_set_address(struct sockaddr_un *address, const char *path, struct error *error)
{
    const size_t length = strlen(path);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length >= sizeof(address->sun_path))
        return error_set(error, "socket \"%s\": expected a path of 1 to %zu bytes, got %zu", path,
                         sizeof(address->sun_path) - 1, length);
    memcpy(address->sun_path, path, length);
    return true;
}

static int new_socket(int type)
{
    return socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool is_same(const struct sockaddr_un *address, const struct stat *before)
{
    struct stat now;

    return lstat(address->sun_path, &now) == 0 && now.st_dev == before->st_dev &&
           now.st_ino == before->st_ino;
}

/* Removes a socket that has no listener. Any other file is an error. */
static bool remove_stale(const struct sockaddr_un *address, int type, struct error *error)
{
    GUARD_FD int fd = -1;
    struct stat found;
    int answer;

    if (lstat(address->sun_path, &found) < 0)
        return errno == ENOENT;
    if (!S_ISSOCK(found.st_mode))
        return error_set(error, "socket \"%s\": the file exists and is no socket",
                         address->sun_path);
    fd = new_socket(type);
    if (fd < 0)
        return false;
    answer = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
    if (answer != ECONNREFUSED && answer != ENOENT)
        return error_set(error, "socket \"%s\": another process listens there: name another socket",
                         address->sun_path);
    return !is_same(address, &found) || unlink(address->sun_path) == 0 || errno == ENOENT;
}

static bool bind_and_listen(struct unix_socket *listening, const struct unix_socket_kind *kind)
{
    const struct sockaddr *address = (const struct sockaddr *)&listening->address;

    /* the file gets the mode that the socket has before bind(2), less the umask */
    return fchmod(listening->fd, kind->mode) == 0 &&
           bind(listening->fd, address, sizeof(listening->address)) == 0 &&
           fchmodat(AT_FDCWD, listening->address.sun_path, kind->mode, AT_SYMLINK_NOFOLLOW) == 0 &&
           lstat(listening->address.sun_path, &listening->made) == 0 &&
           listen(listening->fd, kind->backlog) == 0;
}

bool unix_socket_listen(struct unix_socket *listening, const struct unix_socket_kind *kind,
                        const char *path, struct error *error)
{
    listening->fd = -1;
    if (!unix_socket_set_address(&listening->address, path, error))
        return false;
    error->text[0] = '\0';
    if (remove_stale(&listening->address, kind->type, error)) {
        listening->fd = new_socket(kind->type);
        if (listening->fd >= 0 && bind_and_listen(listening, kind))
            return true;
    }
    if (!error->text[0])
        error_set(error, "socket \"%s\": cannot listen: %s%s", path, strerror(errno),
                  errno == ENOENT ? ": make its folder, or name another socket" : "");
    if (listening->fd >= 0)
        close(listening->fd);
    return false;
}

void unix_socket_close(struct unix_socket *listening)
{
    if (is_same(&listening->address, &listening->made))
        (void)unlink(listening->address.sun_path);
    close(listening->fd);
}

int unix_socket_connect(int type, const char *path, struct error *error)
{
    struct sockaddr_un address;
    int fd;

    if (!unix_socket_set_address(&address, path, error))
        return -1;
    fd = new_socket(type);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error_set(error, "socket \"%s\": cannot connect: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- passed descriptors ---- */

union passed_room {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

ssize_t unix_socket_send(int socket, const void *bytes, size_t length, int passed, int flags)
{
    union passed_room room = {{0}};
    struct iovec iovec = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &iovec, .msg_iovlen = 1};
    struct cmsghdr *head;

    if (passed >= 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof(room.bytes);
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(passed));
        memcpy(CMSG_DATA(head), &passed, sizeof(passed));
    }
    return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t unix_socket_receive(int socket, void *bytes, size_t room, int *passed, int flags)
{
    union passed_room passed_room = {{0}};
    struct iovec iovec = {bytes, room};
    struct msghdr message = {.msg_iov = &iovec,
                             .msg_iovlen = 1,
                             .msg_control = passed_room.bytes,
                             .msg_controllen =
                                 CMSG_LEN(sizeof(*passed))}; /* room for one descriptor */
    const ssize_t length = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = length < 0 ? NULL : CMSG_FIRSTHDR(&message);

    *passed = -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(*passed)))
        memcpy(passed, CMSG_DATA(head), sizeof(*passed));
    return length;
}

/* ---- credentials of a sender ---- */

bool unix_socket_name_senders(int listener)
{
    const int yes = 1;

    return setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0;
}

/* The message has no room for descriptors: the kernel closes them. */
bool unix_socket_sender(int socket, uint32_t *user)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr aligned;
    } room;
    char text;
    struct iovec iovec = {&text, sizeof(text)};
    struct msghdr message = {.msg_iov = &iovec,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof(room.bytes)};
    const ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    struct ucred who;

    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&who, CMSG_DATA(head), sizeof(who));
    *user = who.uid;
    return true;
}
