/*
 * The allocator that fails on request. In a plugin, the environment sets struct starve. With
 * STARVE_AT=N, allocation N fails; with STARVE_AFTER=1, all later ones, too. Allocations smaller
 * than STARVE_MIN do not fail. A last line on stderr then has the numbers of allocations, of failed
 * ones, and of blocks that were not freed.
 *
 * The disk can fail, too. With STARVE_DISK=N, N long writes of the file transport fail with
 * ENOSPC. With STARVE_SYNC=1, each fsync() fails.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "starve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct starve starve;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *string);

ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t at);
int __real_fsync(int fd);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at);
int __wrap_fsync(int fd);

static bool is_to_fail(size_t size)
{
    uint64_t number;
    bool fails;

    if (size < starve.min_size)
        return false;
    number = __atomic_add_fetch(&starve.count, 1, __ATOMIC_RELAXED);
    fails = starve.fail_at &&
            (starve.fails_after ? number >= starve.fail_at : number == starve.fail_at);
    __atomic_add_fetch(&starve.failed, fails, __ATOMIC_RELAXED);
    return fails;
}

static void *counted(void *block)
{
    if (block)
        __atomic_add_fetch(&starve.live, 1, __ATOMIC_RELAXED);
    return block;
}

void *__wrap_malloc(size_t size)
{
    return is_to_fail(size) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_to_fail(count * size) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (is_to_fail(size))
        return NULL;
    if (!block)
        return counted(__real_malloc(size));
    return __real_realloc(block, size);
}

void *__wrap_reallocarray(void *block, size_t count, size_t size)
{
    return size && count > SIZE_MAX / size ? NULL : __wrap_realloc(block, count * size);
}

void __wrap_free(void *block)
{
    if (block)
        __atomic_sub_fetch(&starve.live, 1, __ATOMIC_RELAXED);
    __real_free(block);
}

char *__wrap_strdup(const char *string)
{
    const size_t size = strlen(string) + 1;
    char *copy = __wrap_malloc(size);

    return copy ? memcpy(copy, string, size) : NULL;
}

static long full_writes;
static bool has_bad_sync;

/* The file transport writes "[" at 0, and the short end of the array at 1, before any span. These
 * writes, and later writes of the short end, do not fail. */
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at)
{
    if (at == 0 || size < 10 || full_writes == 0)
        return __real_pwrite(fd, data, size, at);
    full_writes--;
    errno = ENOSPC;
    return -1;
}

int __wrap_fsync(int fd)
{
    if (!has_bad_sync)
        return __real_fsync(fd);
    errno = EDQUOT;
    return -1;
}

static bool is_from_environment;

__attribute__((constructor)) static void read_environment(void)
{
    const char *at = getenv("STARVE_AT");
    const char *disk = getenv("STARVE_DISK");
    const char *least = getenv("STARVE_MIN");

    full_writes = disk ? strtol(disk, NULL, 10) : 0;
    has_bad_sync = getenv("STARVE_SYNC") != NULL;
    if (!at)
        return;
    is_from_environment = true;
    starve.fail_at = strtoull(at, NULL, 10);
    starve.fails_after = getenv("STARVE_AFTER") != NULL;
    starve.min_size = least ? strtoull(least, NULL, 10) : 0;
}

__attribute__((destructor)) static void print_account(void)
{
    if (is_from_environment)
        fprintf(stderr, "starve: %" PRIu64 " allocations, %" PRIu64 " failed, %" PRId64 " live\n",
                starve.count, starve.failed, starve.live);
}
