/*
 * How long LTTng waits at its start, and whether it can start at all.
 *
 * LTTng waits 3 s for a session daemon that does not answer, and for threads that it could not
 * start; at exit it cancels such threads, which is a SIGSEGV.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "lttng_start.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- threads ---- */

#define THREADS 3 /* one for each kind of session daemon, and one more */

static void *wait_for_turn(void *turn)
{
    (void)pthread_mutex_lock(turn);
    (void)pthread_mutex_unlock(turn);
    return NULL;
}

static bool threads_can_start(void)
{
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[THREADS];
    int count = 0, i;
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_mutex_lock(&turn);
    while (count < THREADS && pthread_create(&threads[count], NULL, wait_for_turn, &turn) == 0)
        count++;
    (void)pthread_mutex_unlock(&turn);
    for (i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count == THREADS;
}

/* ---- the session daemon ---- */

static bool read_file(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        (void)close(fd);
    if (length < 0)
        return false;
    text[length] = '\0';
    return true;
}

/* By SIGSTOP or a debugger. In another pid namespace nothing is known. */
static bool is_stopped(const char *folder, const char *below)
{
    char path[PATH_MAX], text[256];
    const char *state;
    int length = snprintf(path, sizeof(path), "%s%s/lttng-sessiond.pid", folder, below);

    if (length >= (int)sizeof(path) || !read_file(path, text, sizeof(text)))
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", strtol(text, NULL, 10));
    if (!read_file(path, text, sizeof(text)) || !strstr(text, "(lttng-sessiond)"))
        return false;
    state = strrchr(text, ')');
    return state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

static bool session_daemon_is_stopped(void)
{
    const char *home = secure_getenv("LTTNG_HOME");

    if (!home)
        home = secure_getenv("HOME");
    return is_stopped("/var/run", "/lttng") || (home && is_stopped(home, "/.lttng"));
}

/* ---- the wait ---- */

bool lttng_start_prepare(char timeout_ms[sizeof(LTTNG_START_TIMEOUT)], bool may_wait)
{
    const char first = may_wait && !session_daemon_is_stopped() ? '1' : '0';

    __atomic_store_n(timeout_ms, first, __ATOMIC_RELAXED); /* threads may load it at once */
    return threads_can_start();
}

void lttng_start_done(char timeout_ms[sizeof(LTTNG_START_TIMEOUT)])
{
    __atomic_store_n(timeout_ms, LTTNG_START_TIMEOUT[0], __ATOMIC_RELAXED);
}
