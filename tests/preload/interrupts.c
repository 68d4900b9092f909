/*
 * Signals that arrive while the preload works: while it looks for rings at a server's first wait,
 * or records in the middle of a wait.
 *
 *     interrupts WAY PORT
 *         A server waits until a handler of SIGUSR1 has set a flag. WAY: poll, ppoll, select,
 *         pselect, epoll_wait, epoll_pwait, epoll_pwait2, accept or accept4. The signal arrives
 *         while the preload looks for rings.
 *
 *     interrupts idle PORT
 *         The same, but the signal arrives while the preload records an answer in the middle of
 *         poll(2).
 *
 *     interrupts restart PORT | ignored PORT
 *         A signal that does not end the call: accept(2) continues after a handler with SA_RESTART,
 *         and poll(2) if the signal is ignored.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "waits.h"
#include "wire.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t is_signalled;
static int pipe_ends[2] = {-1, -1}; /* if it is open, the handler writes a byte into this pipe */

static void on_signal(int number)
{
    is_signalled = number;
    if (pipe_ends[1] >= 0 && write(pipe_ends[1], "", 1) != 1)
        _exit(3);
}

static int64_t now_ms(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the signal ---- */

static int64_t signal_after_ms; /* when clock_gettime() sends SIGUSR1; 0: never */
static bool signals_only_while_blocked;

/* In the middle of a wait, and only there, the library has blocked signals. */
static bool is_blocked(void)
{
    sigset_t blocked;

    (void)sigprocmask(SIG_BLOCK, NULL, &blocked);
    return sigismember(&blocked, SIGUSR1) == 1;
}

/* The library reads the clock when it looks for expired spans. LTTng's threads read it, too. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (signal_after_ms && gettid() == getpid() && now_ms() >= signal_after_ms &&
        (!signals_only_while_blocked || is_blocked())) {
        signal_after_ms = 0;
        (void)kill(getpid(), SIGUSR1);
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* ---- waiting calls ---- */

static void handle(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigaction(SIGUSR1, &action, NULL);
}

static void wait_for_flag(const char *way, int listener)
{
    handle(on_signal, 0);
    signal_after_ms = now_ms();
    while (!is_signalled) {
        if (wait_by(way, listener) >= 0 || errno != EINTR)
            err(1, "%s", way);
    }
    printf("%s: woken\n", way);
}

/* ---- the signal arrives in the middle of a wait ---- */

static void wait_idle(const char *port, int listener)
{
    struct pollfd polled[2] = {{listener, POLLIN, 0}, {listener, POLLIN, 0}};
    int ours, fd;
    char byte = 'x';

    handle(on_signal, 0);
    ours = connect_to(port, 0);
    fd = accept(listener, NULL, NULL);
    signals_only_while_blocked = true; /* not before the wait, which may begin late */
    while (!is_signalled) { /* again if it begins so late that it begins with the recording */
        if (write(ours, &byte, 1) != 1 || read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
            err(1, "a request");
        signal_after_ms = now_ms() + 30;
        if (poll(polled, 2, 5000) != 0 && errno != EINTR)
            err(1, "poll");
    }
    if (signal_after_ms)
        err(1, "the signal did not arrive in the middle of the wait");
    printf("idle: woken\n");
}

/* ---- calls that the signal does not end ---- */

static void accept_after_restart(const char *port, int listener)
{
    int status = 1;
    char byte;
    pid_t client;

    if (pipe(pipe_ends) != 0)
        err(1, "pipe");
    client = fork();
    if (client == 0) {
        if (read(pipe_ends[0], &byte, 1) != 1)
            _exit(1);
        (void)connect_to(port, 0);
        _exit(0);
    }
    handle(on_signal, SA_RESTART);
    signal_after_ms = now_ms();
    if (accept(listener, NULL, NULL) < 0 || !is_signalled)
        err(1, "accept");
    if (waitpid(client, &status, 0) != client || status)
        err(1, "the client");
    printf("restart: continues\n");
}

static void poll_ignoring(int listener)
{
    struct pollfd polled[2] = {{listener, POLLIN, 0}, {listener, POLLIN, 0}};

    handle(SIG_IGN, 0);
    signal_after_ms = now_ms();
    if (poll(polled, 2, 300) != 0)
        err(1, "poll");
    printf("ignored: continues\n");
}

int main(int count, char **arguments)
{
    const char *way = count == 3 ? arguments[1] : "";
    const int listener = count == 3 ? listen_at(arguments[2]) : -1;

    alarm(60); /* ends a call that is not interrupted */
    if (strcmp(way, "idle") == 0)
        wait_idle(arguments[2], listener);
    else if (strcmp(way, "restart") == 0)
        accept_after_restart(arguments[2], listener);
    else if (strcmp(way, "ignored") == 0)
        poll_ignoring(listener);
    else
        wait_for_flag(way, listener);
    return 0;
}
