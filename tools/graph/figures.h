/*
 * Figures as people read them: three digits that mean something, and a unit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FIGURES_H
#define BLKIN_TOOLS_FIGURES_H

#include <stdint.h>

struct figure {
    char text[32];
};

/* "185 us", "3.21 ms", "12.0 s"; micro is how microseconds begin: "u" or "µ". */
struct figure figure_time(int64_t ns, const char *micro);

/* "0.52", "19.0", "1250", "1.25M" */
struct figure figure_number(double value);

/* "1,234,567" */
struct figure figure_count(uint64_t value);

/* In percent: "0 %", "0.4 %", "12 %" */
struct figure figure_share(double part, double whole);

#endif
