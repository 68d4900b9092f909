/*
 * Numbers with a decimal point. The sink lives in programs of others, whose locale may have a
 * comma.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_REAL_H
#define BLKIN_BASE_REAL_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The C locale. glibc has one for all, which is not freed. */
static inline locale_t real_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* As strtod(3). */
static inline double real_read(const char *text, char **end)
{
    return strtod_l(text, end, real_locale());
}

/* The shortest text that reads back as the same number. Returns its length. */
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

#endif
