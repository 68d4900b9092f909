/*
 * A server that puts itself under a seccomp filter: filtered ACTION WHEN HOW PORT
 *
 * ACTION: kill, trap or errno: the filter's action for every system call that serving does not
 * need. WHEN: before or after the first request. HOW: prctl; fork: a child serves under the filter;
 * tsync: a thread that does not serve sets the filter for all threads. The server starts a client,
 * which is not traced and makes three requests. Exit status 0: all requests were answered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wire.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const int allowed[] = {
    SYS_read,           SYS_write,  SYS_recvfrom,     SYS_sendto,
    SYS_close,          SYS_exit,   SYS_futex,        SYS_exit_group,
    SYS_wait4,          SYS_munmap, SYS_rt_sigreturn, SYS_madvise,
    SYS_rt_sigprocmask, SYS_accept, SYS_clone,        SYS_set_robust_list};
#define ALLOWED (sizeof(allowed) / sizeof(*allowed))

static const char *action, *how, *port;
static int listener;
static pthread_barrier_t served_one, filtered;

static void install(void)
{
    struct sock_filter code[2 + 2 * ALLOWED] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.filter = code};
    size_t n = 1;

    for (size_t i = 0; i < ALLOWED; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(
        BPF_RET | BPF_K, strcmp(action, "kill") == 0   ? SECCOMP_RET_KILL_PROCESS
                         : strcmp(action, "trap") == 0 ? SECCOMP_RET_TRAP
                                                       : SECCOMP_RET_ERRNO | EPERM);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        err(1, "no-new-privs");
    if (strcmp(how, "tsync") != 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0
                                  : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                            SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        err(1, "filter");
}

/* Sends a request by raw system calls, which the preload does not see. */
static void ask(int fd)
{
    static unsigned id;
    char line[LINE + 1], answer[OUT];

    line_write(line, ++id, 0, OUT);
    if (syscall(SYS_write, fd, line, LINE) != LINE || syscall(SYS_read, fd, answer, OUT) != OUT)
        _exit(1);
}

static void serve(int fd)
{
    char line[LINE];

    if (!take_all(0, fd, line, LINE))
        _exit(2);
    give_all(0, fd, "12345678", OUT);
}

static void *serve_all(void *after)
{
    const bool is_after = after != NULL;
    const bool is_for_all = strcmp(how, "tsync") == 0;
    int fd = -1, count = 0, status;
    union address from;
    socklen_t size = sizeof(from);
    pid_t child;
    char byte;

    /* a server's first wait loads LTTng: with "before", the filter must be set earlier */
    if (!is_for_all || is_after)
        fd = accept(listener, NULL, NULL);
    for (; count < (is_after ? 1 : 0); count++)
        serve(fd);
    if (is_for_all) {
        pthread_barrier_wait(&served_one);
        pthread_barrier_wait(&filtered);
        if (!is_after)
            fd = accept(listener, &from.any, &size);
    } else {
        install();
    }
    child = strcmp(how, "fork") == 0 ? fork() : 0;
    for (; child == 0 && count < 3; count++)
        serve(fd);
    if (child ? waitpid(child, &status, 0) != child || status : read(fd, &byte, 1) != 0)
        _exit(3);
    close(fd);
    if (strcmp(how, "fork") == 0 && child == 0)
        exit(0);
    return NULL;
}

int main(int argc, char *argv[])
{
    void *after;
    pthread_t thread;
    pid_t client;
    int status;

    if (argc != 5)
        return 2;
    action = argv[1];
    after = strcmp(argv[2], "after") == 0 ? argv : NULL;
    how = argv[3];
    port = argv[4];
    listener = listen_at(port);
    client = fork();
    if (client == 0) {
        const int fd = connect_to(port, 0);

        for (int i = 0; i < 3; i++)
            ask(fd);
        close(fd);
        exit(0);
    }
    if (strcmp(how, "tsync") != 0) {
        (void)serve_all(after);
    } else {
        pthread_barrier_init(&served_one, NULL, 2);
        pthread_barrier_init(&filtered, NULL, 2);
        pthread_create(&thread, NULL, serve_all, after);
        pthread_barrier_wait(&served_one);
        install();
        pthread_barrier_wait(&filtered);
        pthread_join(thread, NULL);
    }
    if (waitpid(client, &status, 0) != client)
        _exit(4);
    exit(status ? 5 : 0);
}
