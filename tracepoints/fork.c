/*
 * Keeps a process traceable across fork(2) and daemon(3), with no LD_PRELOAD.
 *
 * Without this, a child has no LTTng listener thread: sessions that start later never see it, and
 * its events bear the parent's pid. lttng_ust_before_fork() takes a lock, so it must not run twice
 * for one fork: where liblttng-ust-fork.so is preloaded it already wraps fork(), and a program that
 * calls lttng_ust_before_fork() itself says so with BLKIN_FORK=off in its environment.
 *
 * Registering takes a ms, and 3 s where the session daemon hangs: most children exec or never
 * record. So a child at first only gets LTTng's locks back, as a parent does, and forgets the RCU
 * readers of the parent's other threads. Its first record then does what LTTng does after a fork,
 * as if there had been one just now.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fork.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <lttng/urcu/urcu-ust.h>
#include <lttng/ust-fork.h>

/* ---- the connection to session daemons ---- */

#define SOCKETS_MAX  4   /* two to root's session daemon, two to the user's own */
#define SOCKETS_SCAN 256 /* where to look for them: LTTng opens them at its start */

static int sockets[SOCKETS_MAX]; /* as last seen, under LTTng's lock for forks */
static int socket_count;

static bool leads_to_session_daemon(int fd)
{
    struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
    socklen_t length = sizeof(peer) - 1;

    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sun_family == AF_UNIX &&
           strstr(peer.sun_path, "/lttng-ust-sock");
}

/* LTTng has no function that tells them. */
static void find_sockets(void)
{
    bool are_right = socket_count > 0;

    for (int i = 0; i < socket_count; i++)
        are_right = are_right && leads_to_session_daemon(sockets[i]);
    if (are_right)
        return;
    socket_count = 0;
    for (int fd = 0; fd < SOCKETS_SCAN && socket_count < SOCKETS_MAX; fd++) {
        if (leads_to_session_daemon(fd))
            sockets[socket_count++] = fd;
    }
}

/*
 * Where the parent ends first, as by daemon(3), the session daemon is to see it: while a child has
 * the parent's sockets, commands of lttng wait 5 s for an answer. The numbers stay taken, as LTTng
 * will close them when the child registers.
 */
static void leave_sockets_of_parent(void)
{
    const int null = socket_count ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

    if (null < 0)
        return;
    for (int i = 0; i < socket_count; i++)
        (void)dup3(null, sockets[i], O_CLOEXEC);
    socket_count = 0;
    (void)close(null);
}

bool fork_is_registered(void)
{
    sigset_t signals;

    lttng_ust_before_fork(&signals);
    find_sockets();
    lttng_ust_after_fork_parent(&signals);
    return socket_count > 0;
}

/* ---- forks ---- */

static _Thread_local sigset_t saved_signals;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of is_pending, after forks */
static bool is_pending;                                  /* is this child to be registered? */

static void before_fork(void)
{
    const int saved_errno = errno;

    lttng_ust_before_fork(&saved_signals);
    find_sockets();
    errno = saved_errno;
}

static void after_fork_parent(void)
{
    lttng_ust_after_fork_parent(&saved_signals);
}

static void after_fork_child(void)
{
    lttng_ust_after_fork_child(&saved_signals);
}

static void after_fork_child_register_later(void)
{
    const int saved_errno = errno;
    sigset_t all;

    (void)sigfillset(&all);
    lttng_ust_after_fork_parent(&all);
    lttng_ust_urcu_before_fork();
    lttng_ust_urcu_after_fork_child();
    leave_sockets_of_parent();
    (void)pthread_mutex_init(&lock, NULL);
    is_pending = true;
    errno = saved_errno;
    (void)pthread_sigmask(SIG_SETMASK, &saved_signals, NULL);
}

void fork_register(void)
{
    pthread_mutex_lock(&lock);
    if (is_pending) {
        before_fork();
        after_fork_child();
        is_pending = false;
    }
    pthread_mutex_unlock(&lock);
}

static bool has_threads(void)
{
    struct stat tasks;

    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3;
}

/*
 * Before the destructor of LTTng, which cancels its listener threads: those of the parent, in a
 * child that has not registered. The C library has given their place to the first threads of the
 * child.
 */
__attribute__((destructor)) static void leave_threads_alone(void)
{
    if (is_pending && has_threads())
        fork_register();
}

static bool fork_is_wrapped(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "fork");

    return symbol && dladdr(symbol, &info) && info.dli_fname &&
           strstr(info.dli_fname, "liblttng-ust-fork");
}

bool fork_follow(bool at_once)
{
    static bool is_followed, is_later;
    const char *choice = secure_getenv("BLKIN_FORK");

    if (is_followed)
        return is_later;
    is_followed = true;
    if ((choice && strcmp(choice, "off") == 0) || fork_is_wrapped())
        return false;
    is_later = !at_once && !(choice && strcmp(choice, "now") == 0);
    (void)pthread_atfork(before_fork, after_fork_parent,
                         is_later ? after_fork_child_register_later : after_fork_child);
    return is_later;
}
