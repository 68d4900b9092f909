/*
 * A duration as people write it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "duration.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int64_t duration_ms(const char *text)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};
    const size_t digits = strspn(text, "0123456789");
    const int64_t value = digits > 0 && digits < 10 ? strtoll(text, NULL, 10) : 0;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text + digits, units[i].name) == 0)
            return value <= DURATION_MAX_MS / units[i].ms ? value * units[i].ms : 0;
    }
    return 0;
}
