/*
 * Each message is a letter and a name: '+' stores the descriptor sent with the message, '-' removes
 * a descriptor, '.' ends the list of stored descriptors.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fdserver.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FDSERVER_NAME_MAX 128
#define FDSERVER_FIRST_MS 10000  /* until the service that started the process connects */
#define FDSERVER_AGAIN_MS 600000 /* until the next service connects */
#define FDSERVER_OPEN_MS  2000
#define FDSERVER_SEND_MS  1000 /* until the socket has room for a message */
#define FDSERVER_RETRY_MS 10

/* ---- messages -------------------------------------------------------------------------------- */

static bool fdserver_send(int socket, char what, const char *name, int fd)
{
    struct pollfd room = {socket, POLLOUT, 0};
    char text[FDSERVER_NAME_MAX + 1];
    const size_t length = (size_t)snprintf(text, sizeof(text), "%c%s", what, name);

    if (length >= sizeof(text))
        return false;
    return unix_socket_send(socket, text, length, fd, 0) >= 0 ||
           (errno == EAGAIN && poll(&room, 1, FDSERVER_SEND_MS) == 1 &&
            unix_socket_send(socket, text, length, fd, 0) >= 0);
}

/* text: the letter and the name. *fd: the descriptor; -1: none. Returns false at the end. */
static bool fdserver_receive(int socket, char text[FDSERVER_NAME_MAX + 1], int *fd)
{
    const ssize_t length = unix_socket_receive(socket, text, FDSERVER_NAME_MAX, fd, 0);

    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

struct fdserver_stored {
    int fd;
    char name[FDSERVER_NAME_MAX + 1];
};

struct fdserver {
    struct fdserver_stored *stored;
    size_t count, room;
};

static void fdserver_drop(struct fdserver *fdserver, const char *name)
{
    for (size_t i = 0; i < fdserver->count; i++) {
        if (strcmp(fdserver->stored[i].name, name) != 0)
            continue;
        (void)close(fdserver->stored[i].fd);
        fdserver->stored[i--] = fdserver->stored[--fdserver->count];
    }
}

/* Replaces a descriptor of the same name: after a lost connection, a service sends all again. */
static void fdserver_store(struct fdserver *fdserver, int fd, const char *name)
{
    struct fdserver_stored *stored;

    fdserver_drop(fdserver, name);
    if (!ARRAY_FITS(fdserver->stored, fdserver->room, fdserver->count)) {
        (void)close(fd);
        return;
    }
    stored = &fdserver->stored[fdserver->count++];
    stored->fd = fd;
    (void)snprintf(stored->name, sizeof(stored->name), "%s", name);
}

/* Returns when the service disconnects or is killed. */
static void fdserver_serve(struct fdserver *fdserver, int socket)
{
    char text[FDSERVER_NAME_MAX + 1];
    bool is_there = true;
    int fd;

    for (size_t i = 0; is_there && i < fdserver->count; i++)
        is_there = fdserver_send(socket, '+', fdserver->stored[i].name, fdserver->stored[i].fd);
    if (!is_there || !fdserver_send(socket, '.', "", -1))
        return;
    while (fdserver_receive(socket, text, &fd)) {
        if (text[0] == '+' && fd >= 0)
            fdserver_store(fdserver, fd, text + 1);
        else if (fd >= 0)
            (void)close(fd);
        else if (text[0] == '-')
            fdserver_drop(fdserver, text + 1);
    }
}

static int fdserver_accept(int listener, int timeout_ms)
{
    struct pollfd wait = {listener, POLLIN, 0};

    while (poll(&wait, 1, timeout_ms) < 0 && errno == EINTR)
        continue;
    return wait.revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

int fdserver_run(const char *path)
{
    /* a large backlog: connections of fdserver_pid() wait there while a service is connected */
    static const struct unix_socket_kind kind = {SOCK_SEQPACKET, 0600, SOMAXCONN};
    static struct fdserver fdserver;
    struct unix_socket listening;
    struct error error;
    int fd, timeout_ms = FDSERVER_FIRST_MS;

    if (!unix_socket_listen(&listening, &kind, path, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    while ((fd = fdserver_accept(listening.fd, timeout_ms)) >= 0) {
        fdserver_serve(&fdserver, fd);
        (void)close(fd);
        if (!fdserver.count)
            break;
        timeout_ms = FDSERVER_AGAIN_MS;
    }
    unix_socket_close(&listening);
    return 0;
}

static int fdserver_run_job(const void *order, size_t size)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    char path[256];

    (void)prctl(PR_SET_PDEATHSIG, 0); /* the process outlives its parent */
    (void)setsid();
    (void)snprintf(path, sizeof(path), "%.*s", (int)size, (const char *)order);
    /* a reader of the service's output would wait for the end of this process, too */
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(nothing, fd);
    return fdserver_run(path);
}

const struct job fdserver_job = {.name = "fdserver", .run = fdserver_run_job};

/* ---- the service ----------------------------------------------------------------------------- */

/* Starts a process if none listens. Returns -1 with error set if none listens in time. */
static int fdserver_connect(struct loop *loop, const char *path, struct error *error)
{
    const int64_t until_ms = clock_ms() + FDSERVER_OPEN_MS;
    struct child child = {.pid = 0};
    int socket = unix_socket_connect(SOCK_SEQPACKET, path, error);

    if (socket >= 0)
        return socket;
    if (!child_start(
            loop, &child,
            &(struct child_order){.job = &fdserver_job, .bytes = path, .size = strlen(path)})) {
        error_set(error, "cannot start a process: %s", strerror(errno));
        return -1;
    }
    loop_forget(loop, &child);
    while (socket < 0 && clock_ms() < until_ms) {
        (void)poll(NULL, 0, FDSERVER_RETRY_MS);
        socket = unix_socket_connect(SOCK_SEQPACKET, path, error);
    }
    return socket;
}

/* Receives all stored descriptors. Returns false with error set if the end of the list does not
 * arrive. */
static bool fdserver_receive_all(int fdserver, const char *path, int answer_ms,
                                 notify_stored_fn *give, void *context, struct error *error)
{
    struct pollfd wait = {fdserver, POLLIN, 0};
    char text[FDSERVER_NAME_MAX + 1];
    int fd;

    while (poll(&wait, 1, answer_ms) == 1 && fdserver_receive(fdserver, text, &fd)) {
        if (text[0] == '.')
            return true;
        if (fd >= 0)
            give(context, fd, text + 1);
    }
    return error_set(error, "\"%s\": the process that listens there does not answer", path);
}

void fdserver_open(int *fdserver, struct loop *loop, const char *path, int answer_ms,
                   notify_stored_fn *give, void *context, struct error *error)
{
    *fdserver = fdserver_connect(loop, path, error);
    if (*fdserver < 0 || fdserver_receive_all(*fdserver, path, answer_ms, give, context, error))
        return;
    (void)close(*fdserver);
    *fdserver = -1;
}

int64_t fdserver_pid(const char *path)
{
    struct error ignored;
    GUARD_FD const int fdserver = unix_socket_connect(SOCK_SEQPACKET, path, &ignored);
    struct ucred listener = {.pid = 0};
    socklen_t length = sizeof(listener);

    (void)getsockopt(fdserver, SOL_SOCKET, SO_PEERCRED, &listener, &length);
    return listener.pid;
}

bool fdserver_put(int fdserver, int fd, const char *name)
{
    return fdserver_send(fdserver, '+', name, fd);
}

bool fdserver_remove(int fdserver, const char *name)
{
    return fdserver_send(fdserver, '-', name, -1);
}
