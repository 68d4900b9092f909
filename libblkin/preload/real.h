/*
 * The real functions: those that the program would call without this library. dlsym(3) finds them
 * before main() or at the first call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_REAL_H
#define BLKIN_PRELOAD_REAL_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Missing in some glibc headers, or only declared with _FORTIFY_SOURCE. */
#if !__GLIBC_PREREQ(2, 34)
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);
#endif
#if !__GLIBC_PREREQ(2, 35)
int epoll_pwait2(int fd, struct epoll_event *events, int size, const struct timespec *timeout,
                 const sigset_t *mask);
#endif
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
                       struct sockaddr *address, socklen_t *length);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t room);
int __open_2(const char *path, int flags);
int __openat_2(int fd, const char *path, int flags);

/* clang-format off */
#define PRELOAD_EACH_REAL(X) \
    X(accept) X(listen) X(accept4) X(connect) X(socket) X(socketpair) X(shutdown) X(read) \
    X(readv) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(__read_chk) X(__recv_chk) \
    X(__recvfrom_chk) X(fflush) X(write) X(writev) X(send) X(sendto) X(sendmsg) X(sendmmsg) \
    X(sendfile) X(splice) X(close) X(close_range) X(closefrom) X(dup) X(dup2) X(dup3) \
    X(fcntl) X(_exit) X(prctl) X(chroot) X(setuid) X(setreuid) X(setresuid) X(syscall) \
    X(pthread_cancel) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(poll) X(ppoll) \
    X(__poll_chk) X(__ppoll_chk) X(select) X(pselect) X(epoll_ctl) X(open) X(openat) \
    X(creat) X(__open_2) X(__openat_2) X(fclose) X(freopen) X(pread) X(preadv) X(preadv2) \
    X(__pread_chk) X(pwrite) X(pwritev) X(pwritev2) X(fsync) X(fdatasync) X(sync_file_range) \
    X(syncfs) X(fallocate) X(copy_file_range) X(ftruncate)
/* clang-format on */

#define PRELOAD_REAL_POINTER(name) __typeof__(name) *name;
struct preload_real {
    PRELOAD_EACH_REAL(PRELOAD_REAL_POINTER)
};

extern struct preload_real preload_real_functions;
extern bool preload_real_is_ready;

void preload_find_real(void);

/* Used as real()->read(...). A member is NULL if this glibc has no such function: the wrapper then
 * fails with ENOSYS. */
static inline const struct preload_real *real(void)
{
    if (__builtin_expect(!__atomic_load_n(&preload_real_is_ready, __ATOMIC_ACQUIRE), 0))
        preload_find_real();
    return &preload_real_functions;
}

/* Reads the first bytes of a file and adds a NUL. Returns their number or -1. Async-signal-safe, no
 * cancellation point. Makes only system calls that ld.so has made before. */
ssize_t preload_read_file(const char *path, char *text, size_t size);

#endif
