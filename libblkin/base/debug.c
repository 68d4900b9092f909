/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

static bool debug_is_same_file(int fd, int other)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Returns true for a connection to a client. A unix(7) socket usually leads to journald or sshd; it
 * is a client's if standard input is the same socket. */
static bool debug_leads_to_client(int fd)
{
    int domain;
    socklen_t length = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0)
        return false;
    return domain != AF_UNIX || debug_is_same_file(fd, STDIN_FILENO);
}

static bool debug_had_no_stderr;

__attribute__((constructor)) static void debug_look_at_stderr(void)
{
    debug_had_no_stderr = fcntl(STDERR_FILENO, F_GETFD) < 0;
}

/* If a program was started without stderr, one of its files may have the number of stderr. */
static bool debug_leads_to_file(int fd)
{
    struct stat status;

    return debug_had_no_stderr && fstat(fd, &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

void blkin_debug_say(const char *format, ...)
{
    const int saved_errno = errno;
    va_list values;

    va_start(values, format);
    if (debug_leads_to_client(STDERR_FILENO) || debug_leads_to_file(STDERR_FILENO))
        vsyslog(LOG_DAEMON | LOG_WARNING, format, values);
    else if (vdprintf(STDERR_FILENO, format, values) >= 0)
        (void)dprintf(STDERR_FILENO, "\n");
    va_end(values);
    errno = saved_errno;
}
