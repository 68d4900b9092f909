/*
 * What a courier tells the operator.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "courier.h"

#include "babeltrace-plugin/base/monotonic.h"

#define REPORT_PERIOD_MS 60000

void reporter_say(struct reporter *reporter, enum report kind, const char *format, ...)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&reporter->next_ms[kind]);
    struct error message;
    va_list values;

    if (now_ms < next_ms || !atomic_compare_exchange_strong(&reporter->next_ms[kind], &next_ms,
                                                            now_ms + REPORT_PERIOD_MS))
        return;
    va_start(values, format);
    (void)vsnprintf(message.text, sizeof(message.text), format, values);
    va_end(values);
    reporter->report(reporter->context, message.text);
}
