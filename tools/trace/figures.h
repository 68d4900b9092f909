/* Formats figures for people: three significant digits and a unit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FIGURES_H
#define BLKIN_TOOLS_FIGURES_H

#include "babeltrace-plugin/model/histogram.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct figure {
    char text[32];
};

/* The form of a time. */
enum figure_form {
    FIGURE_TEXT, /* "185 us" */
    FIGURE_CELL, /* "185us" */
    FIGURE_PAGE, /* "185 µs" */
};

/* "950 ns", "185 us", "3.21 ms", "12.0 s", "3 d" */
struct figure figure_time(int64_t ns, enum figure_form form);

/* Returns a quantile of a histogram in ns; a dash if it is empty. */
struct figure figure_quantile(const struct histogram *histogram, double q, enum figure_form form);

/* "0.52", "19.0", "1250", "1.25M" */
struct figure figure_number(double value);

/* "1,234,567" */
struct figure figure_count(uint64_t value);

/* Percent: "0 %", "0.4 %", "12 %" */
struct figure figure_share(double part, double whole);

/* Returns {"count", "sum", "p50", "p99", "max"}, times in us; is_whole: with "min" and "p90". NULL:
 * out of memory. */
json_t *figure_json(const struct histogram *histogram, bool is_whole);

#endif
