/*
 * Foreign text on a terminal: nothing in it can move the cursor or change a colour.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TEXT_H
#define BLKIN_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* May the terminal be sent UTF-8? By the locale, unless switched off. */
bool utf8(void);
void utf8_off(void);

/* Is it one of those that turn the direction of writing round? */
bool text_changes_direction(uint32_t code);

/* Columns that put() of the whole text takes. */
size_t columns(const char *text);

/*
 * Writes text to the standard output in at most `room` columns, the last of them telling that there
 * is more. Returns the columns taken.
 */
size_t put(const char *text, size_t room);
void put_spaces(size_t count);

/* No line is shorter; nor longer, where a user says how long. */
#define SCREEN_WIDTH_MIN 60
#define SCREEN_WIDTH_MAX 1000

/* Of the terminal that is the standard output; 80 columns and no rows (0) if it is none. */
struct screen {
    size_t width;
    size_t rows;
};
struct screen screen(void);

/* "950 us", "3.214 ms", "12.03 s" */
struct time_text {
    char text[24];
};
struct time_text time_text(int64_t us);

/* In local time, seconds with 3 or 6 digits behind the point; 0: "at an unknown time". */
struct date_text {
    char text[64];
};
struct date_text date_text(int64_t ns, int digits);

#endif
