/*
 * A duration as people write it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DURATION_H
#define BLKIN_TOOLS_DURATION_H

#include <stdint.h>

#define DURATION_MAX_MS INT64_C(86400000)

/* Of "500ms", "10s" or "2m". Returns 0 if it is no duration from 1 ms to a day. */
int64_t duration_ms(const char *text);

#endif
