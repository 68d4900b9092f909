/*
 * A service's account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "account.h"

#include "tools/base/reader_account.h"

#include <string.h>

void account_line(const char *name, const json_t *values, char line[ACCOUNT_LINE_MAX])
{
    const int length = snprintf(line, ACCOUNT_LINE_MAX - COUNTS_LINE_MAX, "%s: ", name);
    struct counts counts;

    memset(&counts, 0, sizeof(counts));
    counts_read(values, &counts);
    counts_line(&counts, LINE_SHORT, line + length);
}
