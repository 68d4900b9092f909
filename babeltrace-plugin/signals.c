/*
 * The signals that end babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

static const int numbers[] = {SIGTERM, SIGHUP};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static volatile sig_atomic_t has_come;
static unsigned users;
static timer_t timer;
static bool has_timer;

typedef void handler_fn(int number);

static handler_fn *handler_of(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 ? action.sa_handler : SIG_DFL;
}

static bool sigint_is_handled(void)
{
    handler_fn *handler = handler_of(SIGINT);

    return handler != SIG_DFL && handler != SIG_IGN;
}

static void pass_on(int number)
{
    const int error = errno;

    (void)number;
    has_come = 1;
    if (sigint_is_handled())
        (void)raise(SIGINT);
    errno = error;
}

static void set_handler(int number, handler_fn *handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

void signals_open(void)
{
    if (users++)
        return;
    has_come = 0;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (handler_of(numbers[i]) == SIG_DFL)
            set_handler(numbers[i], pass_on, (int)SA_RESETHAND);
    }
}

void signals_close(void)
{
    if (--users)
        return;
    if (has_timer)
        (void)timer_delete(timer);
    has_timer = false;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (handler_of(numbers[i]) == pass_on)
            set_handler(numbers[i], SIG_DFL, 0);
    }
}

bool signals_ask_to_end(void)
{
    return has_come;
}

bool signals_ignore_sigint(void)
{
    return handler_of(SIGINT) == SIG_IGN;
}

void signals_insist(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGINT};
    const struct itimerspec each_second = {{1, 0}, {1, 0}};

    if (has_timer || !sigint_is_handled())
        return;
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (has_timer)
        (void)timer_settime(timer, 0, &each_second, NULL);
}
