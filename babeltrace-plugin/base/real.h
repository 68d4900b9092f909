/*
 * Numbers with a decimal point. The host program's locale may have a comma.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_REAL_H
#define BLKIN_BASE_REAL_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns glibc's C locale, which is a constant and must not be freed. */
static inline locale_t real_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Same as strtod(3), in the C locale. */
static inline double real_read(const char *text, char **end)
{
    return strtod_l(text, end, real_locale());
}

/* Writes the number with the fewest digits from 15 to 17 that read back as the same number. Returns
 * the length like snprintf(3). */
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
