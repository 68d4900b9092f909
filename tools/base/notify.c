/* Notifies systemd. Does not use libsystemd, whose sd_notify() blocks while systemd does not read.
 * sd_notify(3) says that the protocol is stable, and shows how to implement it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "notify.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns -1 with errno set if nobody listens there. */
static int notify_connect(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t length = path ? strlen(path) : 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    errno = ENOENT;
    if (!length || length >= sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') /* an abstract one */
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* passed: a descriptor to pass on, or -1. */
static bool notify_send(const char *text, int passed)
{
    GUARD_FD const int fd = notify_connect();

    return fd >= 0 && unix_socket_send(fd, text, strlen(text), passed, 0) >= 0;
}

void notify(const char *format, ...)
{
    char text[512];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    (void)notify_send(text, -1);
}

void notify_reloading(void)
{
    notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_ns() / 1000);
}

void notify_reloaded(enum message_id id, const char *result)
{
    say(id, "reload: %s", result);
    notify("READY=1");
}

int64_t notify_watchdog_ms(void)
{
    const char *allowed_us = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");

    if (!allowed_us || (pid && strtol(pid, NULL, 10) != getpid()))
        return 0;
    return strtoll(allowed_us, NULL, 10) / 2000;
}

/* ---- stored descriptors ---- */

bool notify_has_store(void)
{
    GUARD_FD const int fd = notify_connect();

    return fd >= 0 || errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

bool notify_store(int fd, const char *name)
{
    char text[320];

    (void)snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    return notify_send(text, fd);
}

bool notify_unstore(const char *name)
{
    char text[320];

    (void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return notify_send(text, -1) || !notify_has_store();
}

#define NOTIFY_FIRST_FD 3 /* sd_listen_fds(3) */

void notify_each_stored(notify_stored_fn *give, void *context)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    const int fds =
        pid && count && strtol(pid, NULL, 10) == getpid() ? (int)strtol(count, NULL, 10) : 0;
    char name[256];

    for (int i = 0; i < fds; i++) {
        const size_t length = names ? strcspn(names, ":") : 0;

        (void)snprintf(name, sizeof(name), "%.*s", (int)length, names ? names : "");
        (void)fcntl(NOTIFY_FIRST_FD + i, F_SETFD, FD_CLOEXEC);
        give(context, NOTIFY_FIRST_FD + i, name);
        if (names)
            names += length + (names[length] == ':');
    }
    (void)unsetenv("LISTEN_PID"); /* these numbers mean other descriptors in children */
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
}
