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
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

static bool is_same_file(int fd, int other)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* A unix(7) socket is journald's or sshd's, unless requests are read from it, too. */
static bool leads_to_a_client(int fd)
{
    int domain;
    socklen_t length = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0)
        return false;
    return domain != AF_UNIX || is_same_file(fd, STDIN_FILENO);
}

/* What stderr was when this library was loaded; no mode: it was closed. */
static struct stat debug_stderr;

__attribute__((constructor)) static void debug_note_stderr(void)
{
    if (fstat(STDERR_FILENO, &debug_stderr) != 0)
        debug_stderr.st_mode = 0;
}

/* A program that has closed its stderr gets the number for the next file that it opens. */
static bool leads_to_a_file_of_the_program(int fd)
{
    struct stat now;

    return fstat(fd, &now) == 0 && (S_ISREG(now.st_mode) || S_ISBLK(now.st_mode)) &&
           (!debug_stderr.st_mode || now.st_dev != debug_stderr.st_dev ||
            now.st_ino != debug_stderr.st_ino);
}

void blkin_debug_say(const char *format, ...)
{
    const int saved_errno = errno;
    va_list values;

    va_start(values, format);
    if (leads_to_a_client(STDERR_FILENO) || leads_to_a_file_of_the_program(STDERR_FILENO))
        vsyslog(LOG_DAEMON | LOG_WARNING, format, values);
    else if (vdprintf(STDERR_FILENO, format, values) >= 0)
        (void)dprintf(STDERR_FILENO, "\n");
    va_end(values);
    errno = saved_errno;
}
