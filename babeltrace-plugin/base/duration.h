/*
 * Numbers with a decimal point, although the host program's locale may have a comma. Durations as
 * people write them: "20us", "1.5 s", "10m".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_DURATION_H
#define BLKIN_BASE_DURATION_H

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns glibc's C locale, which is a constant and needs no free. */
static inline locale_t real_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Same as strtod(3), in the C locale. */
static inline double real_read(const char *text, char **end)
{
    return strtod_l(text, end, real_locale());
}

/* Writes the shortest text that reads back as the same number. Returns the length. */
static inline int real_show(char *text, size_t size, double real)
{
    const locale_t theirs = uselocale(real_locale());
    int length = 0;

    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, size, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    (void)uselocale(theirs);
    return length;
}

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

/* Returns a whole number of ms, from 1 ms to a day; 0 if the text is no such duration. */
static inline int64_t duration_read_ms(const char *text)
{
    const int64_t ns = duration_read(text);

    return ns % 1000000 == 0 && ns > 0 && ns <= INT64_C(86400000000000) ? ns / 1000000 : 0;
}

#endif
