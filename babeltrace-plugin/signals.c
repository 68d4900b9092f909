/*
 * The signals that end babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define NUDGE SIGRTMIN /* has no effect but to interrupt blocking calls */

typedef void handler_fn(int number);

static volatile sig_atomic_t has_come;
static unsigned users;
static struct sigaction interrupt; /* of SIGINT, before signals_open() */
static bool has_interrupt;         /* the former handler is valid */
static timer_t timer;
static bool has_timer;

/* SIG_ERR: not a plain handler. */
static handler_fn *handler_of(int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) != 0 || action.sa_flags & SA_SIGINFO)
        return SIG_ERR;
    return action.sa_handler;
}

static void set_handler(int number, handler_fn *handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

static void exchange(int number, handler_fn *before, handler_fn *after, int flags)
{
    if (handler_of(number) == before)
        set_handler(number, after, flags);
}

/* ---- handlers: signal-safe ---- */

static void on_nudge(int number)
{
    (void)number;
}

static void on_interrupt(int number)
{
    const struct itimerspec each_second = {{1, 0}, {1, 0}};
    const int error = errno;

    interrupt.sa_handler(number);
    if (has_timer)
        (void)timer_settime(timer, 0, &each_second, NULL);
    errno = error;
}

static void on_end(int number)
{
    (void)number;
    has_come = 1;
    if (has_interrupt)
        on_interrupt(SIGINT);
}

/* ---- set-up ---- */

static void open_interrupt(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = NUDGE};
    handler_fn *handler = handler_of(SIGINT);
    struct sigaction action;

    has_interrupt = handler != SIG_DFL && handler != SIG_IGN && handler != SIG_ERR;
    if (!has_interrupt)
        return;
    exchange(NUDGE, SIG_DFL, on_nudge, 0);
    has_timer = handler_of(NUDGE) == on_nudge && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    (void)sigaction(SIGINT, NULL, &interrupt);
    action = interrupt;
    action.sa_handler = on_interrupt;
    action.sa_flags |= (int)SA_RESTART;
    (void)sigaction(SIGINT, &action, NULL);
}

void signals_open(void)
{
    if (users++)
        return;
    has_come = 0;
    open_interrupt();
    exchange(SIGTERM, SIG_DFL, on_end, (int)(SA_RESETHAND | SA_RESTART));
    exchange(SIGHUP, SIG_DFL, on_end, (int)(SA_RESETHAND | SA_RESTART));
}

void signals_close(void)
{
    if (--users)
        return;
    exchange(SIGTERM, on_end, SIG_DFL, 0);
    exchange(SIGHUP, on_end, SIG_DFL, 0);
    if (handler_of(SIGINT) == on_interrupt)
        (void)sigaction(SIGINT, &interrupt, NULL);
    if (has_timer)
        (void)timer_delete(timer);
    has_timer = false;
    exchange(NUDGE, on_nudge, SIG_IGN, 0); /* also if one is pending */
    exchange(NUDGE, SIG_IGN, SIG_DFL, 0);
}

bool signals_ask_to_end(void)
{
    return has_come;
}

bool signals_ignore_sigint(void)
{
    return handler_of(SIGINT) == SIG_IGN;
}
