/*
 * Reads /proc/self, by syscall(2): libblkin-preload.so does not mistake the calls for the
 * program's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "namespaces.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t namespace_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

uint32_t blkin_pid_namespace(void)
{
    return namespace_of("/proc/self/ns/pid");
}

/* Reads the line "monotonic SECONDS NS". The file is about the time namespace of this process's
 * children. Returns 0 if that is not `namespace`. */
static int64_t ahead_by(const char *path, uint32_t namespace)
{
    static const char name[] = "monotonic";
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char text[128] = "", *at = text + sizeof(name) - 1;
    long long seconds;

    if (fd < 0)
        return 0;
    if (syscall(SYS_read, fd, text, sizeof(text) - 1) < 0 ||
        strncmp(text, name, sizeof(name) - 1) != 0)
        at = text + strlen(text);
    (void)syscall(SYS_close, fd);
    if (namespace_of("/proc/self/ns/time_for_children") != namespace)
        return 0;
    seconds = strtoll(at, &at, 10);
    return (int64_t)seconds * 1000000000 + strtoll(at, NULL, 10);
}

int64_t blkin_clock_ahead_ns(void)
{
    static uint32_t known; /* the namespace for which ahead_ns was read */
    static int64_t ahead_ns;
    const uint32_t namespace = namespace_of("/proc/self/ns/time");

    if (!namespace || namespace != known) {
        ahead_ns = ahead_by("/proc/self/timens_offsets", namespace);
        known = namespace;
    }
    return ahead_ns;
}
