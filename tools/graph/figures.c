/*
 * Figures as people read them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

/* Three digits, rounded. */
static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

struct figure figure_time(int64_t ns, const char *micro)
{
    const double value = (double)ns;
    struct figure figure;

    if (ns > 0 && ns < 1000)
        snprintf(figure.text, sizeof(figure.text), "%" PRId64 " ns", ns);
    else if (value < 999.5e3)
        snprintf(figure.text, sizeof(figure.text), "%.0f %ss", value / 1e3, micro);
    else if (value < 999.5e6)
        snprintf(figure.text, sizeof(figure.text), "%.*f ms", decimals(value / 1e6), value / 1e6);
    else if (value < 99999.5e9)
        snprintf(figure.text, sizeof(figure.text), "%.*f s", decimals(value / 1e9), value / 1e9);
    else
        snprintf(figure.text, sizeof(figure.text), "%.0f d", value / 86400e9);
    return figure;
}

struct figure figure_number(double value)
{
    struct figure figure;

    if (value < 99999.5)
        snprintf(figure.text, sizeof(figure.text), "%.*f", value == 0 ? 0 : decimals(value), value);
    else
        snprintf(figure.text, sizeof(figure.text), "%.3gM", value / 1e6);
    return figure;
}

struct figure figure_count(uint64_t value)
{
    char digits[24];
    const size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);
    struct figure figure = {""};
    char *at = figure.text;

    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return figure;
}

struct figure figure_share(double part, double whole)
{
    const double percent = whole > 0 ? part * 100 / whole : 0;
    struct figure figure = {"<0.1 %"};

    if (percent == 0 || percent >= 0.05)
        snprintf(figure.text, sizeof(figure.text), "%.*f %%", percent > 0 && percent < 9.95 ? 1 : 0,
                 percent);
    return figure;
}
