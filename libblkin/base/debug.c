/*
 * Lines for people.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "debug.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

/* A unix(7) socket is journald's. */
static bool leads_to_a_client(int fd)
{
    int domain = AF_UNIX;
    socklen_t length = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX;
}

void blkin_debug_say(const char *format, ...)
{
    const int saved_errno = errno;
    va_list values;

    va_start(values, format);
    if (leads_to_a_client(STDERR_FILENO))
        vsyslog(LOG_DAEMON | LOG_WARNING, format, values);
    else if (vdprintf(STDERR_FILENO, format, values) >= 0)
        (void)dprintf(STDERR_FILENO, "\n");
    va_end(values);
    errno = saved_errno;
}
