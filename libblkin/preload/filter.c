/*
 * Seccomp filters that a process has inherited.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "filter.h"

#include "config.h"
#include "preload.h"
#include "real.h"

#include <fcntl.h>
#include <string.h>

/* By calls that ld.so has made before. */
static bool filter_is_inherited(void)
{
    char text[4096];
    const char *line;
    const int fd = real()->open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : real()->read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        (void)real()->close(fd);
    if (length < 0)
        return false;
    text[length] = '\0';
    line = strstr(text, "\nSeccomp:\t");
    return line && line[strlen("\nSeccomp:\t")] != '0';
}

void filter_init(void)
{
    const int saved_errno = errno;

    preload_is_filtered = !preload_config()->trusts_filters && filter_is_inherited();
    errno = saved_errno;
}
