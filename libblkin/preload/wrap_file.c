/*
 * Wrappers of calls on files only. wrap_socket.c has read(2), write(2) and similar calls, which
 * work on sockets, too.
 *
 * Not wrapped: msync(2), which has no descriptor; calls with paths, such as truncate(2);
 * asynchronous calls, aio(7) and io_uring(7), for which the caller does not wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"
#include "connection.h"
#include "file.h"
#include "preload.h"
#include "real.h"

#include <stdarg.h>

#define NO_OFFSET (-1)

/* fd: that of the file; shown: the call's name in spans. */
#define FILE_WRAPPER(type, name, parameters, arguments, fd, shown, kind, offset)     \
    PRELOAD_PUBLIC type name parameters                                              \
    {                                                                                \
        FILE_CALL(preload_is_on(), fd, shown, kind, offset, real()->name arguments); \
    }

/* ---- reading ---- */

FILE_WRAPPER(ssize_t, pread, (int fd, void *buffer, size_t size, off_t offset),
             (fd, buffer, size, offset), fd, "pread", FILE_READ, offset)
PRELOAD_ALIAS(pread64, pread);

FILE_WRAPPER(ssize_t, __pread_chk, (int fd, void *buffer, size_t size, off_t offset, size_t room),
             (fd, buffer, size, offset, room), fd, "pread", FILE_READ, offset)
PRELOAD_ALIAS(__pread64_chk, __pread_chk);

FILE_WRAPPER(ssize_t, preadv, (int fd, const struct iovec *parts, int count, off_t offset),
             (fd, parts, count, offset), fd, "preadv", FILE_READ, offset)
PRELOAD_ALIAS(preadv64, preadv);

FILE_WRAPPER(ssize_t, preadv2,
             (int fd, const struct iovec *parts, int count, off_t offset, int flags),
             (fd, parts, count, offset, flags), fd, "preadv", FILE_READ, offset)
PRELOAD_ALIAS(preadv64v2, preadv2);

/* ---- writing ---- */

FILE_WRAPPER(ssize_t, pwrite, (int fd, const void *buffer, size_t size, off_t offset),
             (fd, buffer, size, offset), fd, "pwrite", FILE_WRITE, offset)
PRELOAD_ALIAS(pwrite64, pwrite);

FILE_WRAPPER(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t offset),
             (fd, parts, count, offset), fd, "pwritev", FILE_WRITE, offset)
PRELOAD_ALIAS(pwritev64, pwritev);

FILE_WRAPPER(ssize_t, pwritev2,
             (int fd, const struct iovec *parts, int count, off_t offset, int flags),
             (fd, parts, count, offset, flags), fd, "pwritev", FILE_WRITE, offset)
PRELOAD_ALIAS(pwritev64v2, pwritev2);

/* The call counts as a write to the target. */
FILE_WRAPPER(ssize_t, copy_file_range,
             (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length,
              unsigned flags),
             (from, from_offset, to, to_offset, length, flags), to, "copy_file_range", FILE_WRITE,
             NO_OFFSET)

FILE_WRAPPER(int, fallocate, (int fd, int mode, off_t offset, off_t length),
             (fd, mode, offset, length), fd, "fallocate", FILE_WRITE, offset)
PRELOAD_ALIAS(fallocate64, fallocate);

FILE_WRAPPER(int, ftruncate, (int fd, off_t length), (fd, length), fd, "ftruncate", FILE_WRITE,
             length)
PRELOAD_ALIAS(ftruncate64, ftruncate);

/* ---- waiting for the disk ---- */

FILE_WRAPPER(int, fsync, (int fd), (fd), fd, "fsync", FILE_SYNC, NO_OFFSET)
FILE_WRAPPER(int, fdatasync, (int fd), (fd), fd, "fdatasync", FILE_SYNC, NO_OFFSET)
FILE_WRAPPER(int, syncfs, (int fd), (fd), fd, "syncfs", FILE_SYNC, NO_OFFSET)
FILE_WRAPPER(int, sync_file_range, (int fd, off64_t offset, off64_t length, unsigned flags),
             (fd, offset, length, flags), fd, "sync_file_range", FILE_SYNC, offset)

/* ---- opening and closing ---- */

/* Forgets a known descriptor of that number: it was closed without a wrapper. */
static int wrap_file_opened(int fd, const char *path)
{
    connection_forget_new(fd);
    if (fd < 0 || !preload_is_on() || preload_config()->file_calls == PRELOAD_FILES_OFF)
        return fd;
    PRELOAD_INSIDE(file_opened(fd, path));
    return fd;
}

/* The mode is an argument only with flags that may create a file. */
static mode_t wrap_file_mode_of(int flags, va_list rest)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define READ_MODE                          \
    va_list rest;                          \
    mode_t mode;                           \
                                           \
    va_start(rest, flags);                 \
    mode = wrap_file_mode_of(flags, rest); \
    va_end(rest)

PRELOAD_PUBLIC int open(const char *path, int flags, ...)
{
    READ_MODE;
    return wrap_file_opened(real()->open(path, flags, mode), path);
}
PRELOAD_ALIAS(open64, open);

PRELOAD_PUBLIC int openat(int folder, const char *path, int flags, ...)
{
    READ_MODE;
    return wrap_file_opened(real()->openat(folder, path, flags, mode), path);
}
PRELOAD_ALIAS(openat64, openat);

PRELOAD_PUBLIC int __open_2(const char *path, int flags)
{
    return wrap_file_opened(real()->__open_2(path, flags), path);
}
PRELOAD_ALIAS(__open64_2, __open_2);

PRELOAD_PUBLIC int __openat_2(int folder, const char *path, int flags)
{
    return wrap_file_opened(real()->__openat_2(folder, path, flags), path);
}
PRELOAD_ALIAS(__openat64_2, __openat_2);

PRELOAD_PUBLIC int creat(const char *path, mode_t mode)
{
    return wrap_file_opened(real()->creat(path, mode), path);
}
PRELOAD_ALIAS(creat64, creat);

/* Called before functions that close the descriptor inside libc. For a stream without a descriptor,
 * fileno(3) returns -1. */
static void wrap_file_forget_stream(FILE *stream)
{
    const int saved_errno = errno;

    if (preload_is_socket(preload_slot(fileno(stream))))
        (void)fflush(stream); /* the wrapper records the last bytes of an answer */
    connection_forget_new(fileno(stream));
    errno = saved_errno;
}

PRELOAD_PUBLIC int fclose(FILE *stream)
{
    wrap_file_forget_stream(stream);
    return real()->fclose(stream);
}

PRELOAD_PUBLIC FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    wrap_file_forget_stream(stream);
    return real()->freopen(path, mode, stream);
}
PRELOAD_ALIAS(freopen64, freopen);
