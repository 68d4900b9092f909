/*
 * Messages about the delivery.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "reporter.h"

#include "../error.h"
#include "../monotonic.h"

#define PERIOD_MS 60000

void reporter_say(struct reporter *reporter, enum report kind, const char *format, ...)
{
    const int64_t now_ms = clock_ms();
    struct error message;
    va_list values;

    if (now_ms < reporter->next_ms[kind])
        return;
    reporter->next_ms[kind] = now_ms + PERIOD_MS;
    va_start(values, format);
    (void)vsnprintf(message.text, sizeof(message.text), format, values);
    va_end(values);
    reporter->report(reporter->context, message.text);
}
