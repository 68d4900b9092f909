/*
 * Seccomp filters that a process has inherited.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "filter.h"

#include "config.h"
#include "preload.h"
#include "real.h"

#include <string.h>

static bool filter_is_inherited(void)
{
    char text[4096];
    const char *line;

    (void)preload_read_file("/proc/self/status", text, sizeof(text));
    line = strstr(text, "\nSeccomp:\t");
    return line && line[strlen("\nSeccomp:\t")] != '0';
}

void filter_init(void)
{
    const int saved_errno = errno;

    preload_is_filtered = !preload_config()->trusts_filters && filter_is_inherited();
    errno = saved_errno;
}
