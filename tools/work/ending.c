/* The end of a worker.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ending.h"

#include "tools/base/say.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

static volatile sig_atomic_t is_asked;
static bool has_failed, failed_before_asked;

static void ending_on_signal(int signal)
{
    (void)signal;
    is_asked = 1;
}

void ending_take_signals(void)
{
    const struct sigaction action = {.sa_handler = ending_on_signal};

    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

bool ending_is_asked(void)
{
    return is_asked;
}

void ending_fail(const char *format, ...)
{
    char text[1024];
    va_list values;

    if (has_failed)
        return;
    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    has_failed = true;
    failed_before_asked = !is_asked;
    say(is_asked ? BK7016 : BK7015,
        "%s: this worker ends; the next one counts the spans that it has not committed", text);
}

bool ending_has_failed(void)
{
    return has_failed;
}

bool ending_is_well(void)
{
    return !failed_before_asked;
}
