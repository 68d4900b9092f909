/*
 * What a service tells systemd. Not by libsystemd: its sd_notify() blocks while systemd does not
 * read, and a service's loop must not. sd_notify(3) says that the protocol is stable, and shows how
 * to implement it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "notify.h"

#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void send_to(const char *path, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && length && length < sizeof(address.sun_path)) {
        memcpy(address.sun_path, path, length);
        if (path[0] == '@') /* an abstract one */
            address.sun_path[0] = '\0';
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    }
    if (fd >= 0)
        close(fd);
}

void notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    char text[512];
    va_list values;

    if (!path)
        return;
    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    send_to(path, text);
}

void notify_reloading(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64,
           (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
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
