/*
 * Servers that fork for each connection, and their client.
 *
 *     forks serve PORT COUNT
 *         answers one byte with one byte, COUNT times.
 *
 *     forks close PORT COUNT FILES
 *         the same, but the first time without a fork. Each child closes all descriptors from 4 on,
 *         and opens FILES files. The descriptors must stay the child's; if not, the child fails
 *         with a message.
 *
 *     forks bare PORT COUNT
 *         answers by turns itself, in a child of _Fork(3), and in a child of clone(2).
 *
 *     forks twice PORT COUNT
 *         a grandchild answers. By turns, the process in between ends at once, or after the
 *         grandchild.
 *
 *     forks busy PORT COUNT
 *         two threads send requests to each other all the time. Meanwhile the program forks COUNT
 *         children, which call exit(3). It fails if a child has not ended after a minute.
 *
 *     forks ask PORT COUNT
 *         sends COUNT requests. Prints the time of the slowest one, in us.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "waits.h"
#include "wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- servers ---- */

/* Descriptor 3 is the connection. */
static void use_files(int count)
{
    struct stat status[256], again;
    int fds[256];
    char byte = 'f';

    closefrom(4);
    for (int i = 0; i < count; i++) {
        fds[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
        if (fds[i] < 0 || write(fds[i], &byte, 1) != 1 || fstat(fds[i], &status[i]) < 0)
            err(1, "a file of its own");
    }
    if (read(3, &byte, 1) != 1)
        err(1, "read");
    pause_us(rand() % 3000); /* sessions begin and end meanwhile */
    if (write(3, &byte, 1) != 1)
        err(1, "write");
    pause_us(rand() % 3000);
    for (int i = 0; i < count; i++) {
        if (fstat(fds[i], &again) < 0 || again.st_ino != status[i].st_ino ||
            again.st_dev != status[i].st_dev || again.st_size != 1) {
            fprintf(stderr, "descriptor %d is no longer the program's file\n", fds[i]);
            exit(1);
        }
    }
}

static void answer(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
        err(1, "answer");
}

static void serve(const char *address, int connections, int files)
{
    const int listener = listen_at(address);
    int status, fd;
    pid_t child;

    for (int i = 0; i < connections; i++) {
        fd = accept(listener, NULL, NULL);
        if (files && i == 0) {
            answer(fd);
            close(fd);
            continue;
        }
        child = fork();
        if (child == 0) {
            if (files) {
                srand((unsigned)i);
                if (dup2(fd, 3) != 3)
                    err(1, "dup2");
                use_files(files);
            } else {
                answer(fd);
            }
            exit(0);
        }
        close(fd);
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            err(1, "a child has failed");
    }
}

static void serve_bare(const char *address, int connections)
{
    const int listener = listen_at(address);
    int status;

    for (int i = 0; i < connections; i++) {
        const int fd = accept(listener, NULL, NULL);
        pid_t child = -1;

        if (i % 3 == 1)
            child = _Fork();
        else if (i % 3 == 2)
            child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child <= 0)
            answer(fd);
        if (child == 0)
            exit(0);
        close(fd);
        if (child > 0 && (waitpid(child, &status, 0) != child || status))
            err(1, "a child has failed");
    }
}

/* ---- forks of a busy process ---- */

static const char *busy_address;
static int busy_listener;

static void *answer_all(void *unused)
{
    const int fd = accept(busy_listener, NULL, NULL);
    char byte;

    while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
        continue;
    return unused;
}

static void *ask_all(void *unused)
{
    const int fd = connect_to(busy_address, 0);
    char byte = 'x';

    while (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1)
        continue;
    return unused;
}

static void fork_while_busy(const char *address, int children)
{
    pthread_t threads[2];
    int status;

    busy_address = address;
    busy_listener = listen_at(address);
    if (pthread_create(&threads[0], NULL, answer_all, NULL) != 0 ||
        pthread_create(&threads[1], NULL, ask_all, NULL) != 0)
        err(1, "pthread_create");
    for (int i = 0; i < children; i++) {
        const pid_t child = fork();

        if (child == 0)
            exit(0);
        for (int64_t end_ms = 0; waitpid(child, &status, WNOHANG) == 0;) {
            if (!wait_up_to(PATIENCE_MS, &end_ms)) {
                (void)kill(child, SIGKILL);
                err(1, "a child hangs");
            }
        }
        if (status)
            err(1, "a child has failed");
    }
    exit(0);
}

/* The process between the server and the grandchild that answers. */
static void fork_grandchild(int fd, bool ends_first)
{
    const pid_t parent = getpid(), child = fork();
    int status;

    if (child == 0) {
        for (int64_t end_ms = 0; ends_first && getppid() == parent;)
            if (!wait_up_to(PATIENCE_MS, &end_ms))
                err(1, "the parent does not end");
        answer(fd);
        exit(0);
    }
    close(fd);
    exit(child < 0 || (!ends_first && (waitpid(child, &status, 0) != child || status)));
}

static void serve_twice(const char *address, int connections)
{
    const int listener = listen_at(address);
    int status;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < connections; i++) {
        const int fd = accept(listener, NULL, NULL);
        const pid_t child = fork();

        if (child == 0)
            fork_grandchild(fd, i % 2);
        close(fd);
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            err(1, "a child has failed");
    }
    while (wait(NULL) > 0) /* grandchildren */
        continue;
}

/* ---- the client ---- */

static int64_t ask(const char *address)
{
    const int64_t begin_ns = monotonic_ns();
    const int fd = connect_to(address, 0);
    char byte = 'x';

    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
        err(1, "%s", address);
    if (read(fd, &byte, 1) != 0) /* the child's end */
        err(1, "%s", address);
    close(fd);
    return monotonic_ns() - begin_ns;
}

int main(int count, char **arguments)
{
    int64_t slowest_ns = 0;

    if (count == 4 && strcmp(arguments[1], "serve") == 0) {
        serve(arguments[2], atoi(arguments[3]), 0);
    } else if (count == 5) {
        serve(arguments[2], atoi(arguments[3]), atoi(arguments[4]));
    } else if (count == 4 && strcmp(arguments[1], "bare") == 0) {
        serve_bare(arguments[2], atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[1], "busy") == 0) {
        fork_while_busy(arguments[2], atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[1], "twice") == 0) {
        serve_twice(arguments[2], atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[1], "ask") == 0) {
        for (int i = atoi(arguments[3]); i > 0; i--) {
            const int64_t time_ns = ask(arguments[2]);

            slowest_ns = time_ns > slowest_ns ? time_ns : slowest_ns;
        }
        printf("%" PRId64 "\n", slowest_ns / 1000);
    } else {
        fprintf(stderr, "see the head of forks.c\n");
        return 2;
    }
    return 0;
}
