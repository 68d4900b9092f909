/*
 * Finding the real functions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

struct preload_real preload_real_functions;
bool preload_real_is_ready;

/*
 * Two threads at once find the same. The pointer is copied as bytes: ISO C has no conversion.
 */
static void find(void *pointer, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(pointer, &found, sizeof(found));
}

void preload_find_real(void)
{
    const int saved_errno = errno;

#define FIND(name) find(&preload_real_functions.name, #name);
    PRELOAD_REAL_SOCKETS(FIND)
    PRELOAD_REAL_WAITS(FIND)
    PRELOAD_REAL_FILES(FIND)
    __atomic_store_n(&preload_real_is_ready, true, __ATOMIC_RELEASE);
    errno = saved_errno;
}

ssize_t preload_read_file(const char *path, char *text, size_t size)
{
    const int fd = (int)real()->syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : real()->syscall(SYS_read, fd, text, size - 1);

    if (fd >= 0)
        (void)real()->syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* As early as can be: before the constructors of libraries that are loaded after us. */
__attribute__((constructor(101))) static void find_at_start(void)
{
    preload_find_real();
}
