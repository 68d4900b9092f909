/*
 * Durations as people write them: "20us", "1.5 s", "10m".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_DURATION_H
#define BLKIN_BASE_DURATION_H

#include "real.h"

#include <stdint.h>
#include <string.h>

#define DURATION_MAX_NS 1e18 /* 30 years */

/* Reads a number with the unit ns, us, ms, s, m, h or d. Returns ns, or -1 if the text is no
 * duration or the duration exceeds DURATION_MAX_NS. */
static inline int64_t duration_read(const char *text)
{
    static const struct {
        char name[4];
        double ns;
    } units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
                 {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    char *end;
    const double number = real_read(text, &end);

    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0 && text[0] >= '0' && text[0] <= '9' &&
            number * units[i].ns < DURATION_MAX_NS)
            return (int64_t)(number * units[i].ns + 0.5);
    }
    return -1;
}

/* Returns ms: 1 ms to a day; 0 if the text is no such duration. */
static inline int64_t duration_read_ms(const char *text)
{
    const int64_t ns = duration_read(text);

    return ns % 1000000 == 0 && ns > 0 && ns <= INT64_C(86400000000000) ? ns / 1000000 : 0;
}

#endif
