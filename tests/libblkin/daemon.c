/*
 * Forks for test-daemon.sh.
 *
 *     daemon PID-FILE GO-FIFO COUNT   becomes a daemon, waits to be told, records COUNT times
 *     daemon forks COUNT PID          has COUNT children that do not record, while PID is stopped
 *     daemon exits                    a child that has not recorded, but has a thread, calls
 * exit(3)
 *     daemon files                    a child that has not recorded opens as many files as it can,
 * and forks
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_pid(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        return -1;
    fprintf(file, "%d\n", (int)getpid());
    return fclose(file);
}

static int wait_for(pid_t child)
{
    int status = 1;

    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return check_status();
}

static int have_children(int count, pid_t to_stop)
{
    CHECK(kill(to_stop, SIGSTOP) == 0);
    for (int i = 0; i < count; i++) {
        const pid_t child = fork();

        if (child == 0)
            _exit(0);
        (void)wait_for(child);
    }
    CHECK(kill(to_stop, SIGCONT) == 0);
    return check_status();
}

/* ---- exit of a child that LTTng does not know ---- */

static int thread_ready[2], never[2];

static void say_cancelled(void *unused)
{
    static const char text[] = "the child's thread was cancelled\n";

    (void)unused;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        abort();
    _exit(3);
}

static void *wait_for_ever(void *unused)
{
    char byte = 0;

    pthread_cleanup_push(say_cancelled, NULL);
    CHECK(write(thread_ready[1], &byte, 1) == 1);
    CHECK(read(never[0], &byte, 1) == 1);
    pthread_cleanup_pop(0);
    return unused;
}

static int exit_with_threads(void)
{
    const pid_t child = fork();
    pthread_t thread;
    char byte;

    if (child)
        return wait_for(child);
    CHECK(pipe(thread_ready) == 0 && pipe(never) == 0);
    /* as many as the parent had, to take the places of all */
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
        CHECK(read(thread_ready[0], &byte, 1) == 1);
    }
    exit(check_status());
}

/* ---- descriptors of a child, with the numbers that LTTng had in the parent ---- */

#define FILES 1000

int blkin_lttng_descriptor_(unsigned from, unsigned to); /* as the preload has it */

static int fork_with_files(void)
{
    const pid_t child = fork();
    pid_t grandchild;
    int fd, last = -1;

    if (child)
        return wait_for(child);
    for (; (fd = open("/dev/null", O_RDONLY)) >= 0 && fd < FILES; last = fd)
        CHECK(blkin_lttng_descriptor_((unsigned)fd, (unsigned)fd) < 0); /* it may close it */
    grandchild = fork();
    if (grandchild)
        _exit(wait_for(grandchild));
    for (fd = STDERR_FILENO + 1; fd <= last; fd++)
        CHECK(fcntl(fd, F_GETFD) >= 0);
    _exit(check_status());
}

static int become_daemon(char **argv)
{
    struct blkin_endpoint endpoint;
    struct blkin_trace trace;
    char go;
    int fifo;

    blkin_init_endpoint(&endpoint, "127.0.0.1", 1, "daemon");
    if (daemon(1, 1) < 0 || write_pid(argv[1]) < 0)
        return 1;

    /* opens when the script writes */
    fifo = open(argv[2], O_RDONLY);
    if (fifo < 0 || read(fifo, &go, 1) != 1)
        return 1;
    for (int i = 0; i < atoi(argv[3]); i++) {
        blkin_init_new_trace(&trace, "request", &endpoint);
        BLKIN_KEYVAL_INTEGER(&trace, NULL, "i", i);
    }
    return 0;
}

int main(int argc, char **argv)
{
    blkin_init();
    if (argc == 2 && strcmp(argv[1], "exits") == 0)
        return exit_with_threads();
    if (argc == 2 && strcmp(argv[1], "files") == 0)
        return fork_with_files();
    if (argc == 4 && strcmp(argv[1], "forks") == 0)
        return have_children(atoi(argv[2]), (pid_t)atoi(argv[3]));
    return argc == 4 ? become_daemon(argv) : 2;
}
