/*
 * A service's account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "account.h"

#include "account/counters.h"

#include <string.h>

void account_line(const char *name, const json_t *values, char line[ACCOUNT_LINE_MAX])
{
    const int length = snprintf(line, ACCOUNT_LINE_MAX - COUNTS_LINE_MAX, "%s: ", name);
    struct counts counts;

    memset(&counts, 0, sizeof(counts));
    for (size_t i = 0; i < counters_count; i++) {
        const uint64_t value =
            (uint64_t)json_integer_value(json_object_get(values, counters[i].name));

        memcpy((char *)&counts + counters[i].offset, &value, sizeof(value));
    }
    counts_line(&counts, LINE_SHORT, line + length);
}
