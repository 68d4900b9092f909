/* SPDX-License-Identifier: BSD-2-Clause */
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns the decimals for three significant digits. */
static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static struct figure scaled(double value, const char *gap, const char *unit)
{
    struct figure figure;

    snprintf(figure.text, sizeof(figure.text), "%.*f%s%s", decimals(value), value, gap, unit);
    return figure;
}

struct figure figure_time(int64_t ns, enum figure_form form)
{
    const double value = (double)ns;
    const char *gap = form == FIGURE_CELL ? "" : " ";
    struct figure figure;

    if (value >= 99999.5e9)
        snprintf(figure.text, sizeof(figure.text), "%.0f%sd", value / 86400e9, gap);
    else if (value >= 999.5e6)
        figure = scaled(value / 1e9, gap, "s");
    else if (value >= 999.5e3)
        figure = scaled(value / 1e6, gap, "ms");
    else if (ns > 0 && ns < 1000)
        snprintf(figure.text, sizeof(figure.text), "%" PRId64 "%sns", ns, gap);
    else
        snprintf(figure.text, sizeof(figure.text), "%.0f%s%ss", value / 1e3, gap,
                 form == FIGURE_PAGE ? "µ" : "u");
    return figure;
}

struct figure figure_quantile(const struct histogram *histogram, double q, enum figure_form form)
{
    struct figure none;

    if (histogram->count)
        return figure_time(histogram_quantile(histogram, q), form);
    snprintf(none.text, sizeof(none.text), "%s", form == FIGURE_PAGE ? "–" : "-");
    return none;
}

struct figure figure_number(double value)
{
    struct figure figure;

    if (value < 999999.5)
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

/* Rounds to the nearest us, so values below 185 us are exact: see histogram.h. */
static json_t *quantile_us(const struct histogram *histogram, double q)
{
    const int64_t ns = histogram_quantile(histogram, q);

    return json_integer(ns / 1000 + (ns % 1000 >= 500));
}

json_t *figure_json(const struct histogram *histogram, bool is_whole)
{
    return json_pack(
        "{s:I, s:f, s:o*, s:o, s:o*, s:o, s:o}", "count", (json_int_t)histogram->count, "sum",
        histogram->sum / 1000, "min", is_whole ? quantile_us(histogram, 0) : NULL, "p50",
        quantile_us(histogram, 0.5), "p90", is_whole ? quantile_us(histogram, 0.9) : NULL, "p99",
        quantile_us(histogram, 0.99), "max", quantile_us(histogram, 1));
}
