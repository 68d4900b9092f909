/*
 * What a courier tells the operator.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "courier.h"

#include "babeltrace-plugin/base/monotonic.h"

#define REPORT_PERIOD_MS 60000
#define REPORT_FIRST_ID  8001

void reporter_say(struct reporter *reporter, enum report kind, const char *format, ...)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&reporter->next_ms[kind]);
    struct error message;
    va_list values;
    int length;

    if (now_ms < next_ms || !atomic_compare_exchange_strong(&reporter->next_ms[kind], &next_ms,
                                                            now_ms + REPORT_PERIOD_MS))
        return;
    length = snprintf(message.text, sizeof(message.text), "BK%d ", REPORT_FIRST_ID + (int)kind);
    va_start(values, format);
    (void)vsnprintf(message.text + length, sizeof(message.text) - (size_t)length, format, values);
    va_end(values);
    reporter->report(reporter->context, message.text);
}
