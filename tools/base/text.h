/*
 * Prints foreign text on a terminal: the text cannot move the cursor or change a colour.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TEXT_H
#define BLKIN_TOOLS_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the locale has UTF-8 and utf8_off() was not called. */
bool has_utf8(void);
void utf8_off(void);

/* Returns whether the character changes the direction of writing. */
bool text_changes_direction(uint32_t code);

/* Returns the number of columns of the whole text, as put_text() writes it. */
size_t columns(const char *text);

/*
 * Writes text to the standard output in at most `room` columns. A cut text ends with an ellipsis,
 * or with ~ without UTF-8. Returns the columns taken.
 */
size_t put_text(const char *text, size_t room);
void put_spaces(size_t count);

/* MIN: a narrower terminal counts as this wide. MAX: the largest width that an option may set. */
#define SCREEN_WIDTH_MIN 60
#define SCREEN_WIDTH_MAX 1000

/* The size of the terminal at the standard output; 80 columns and 0 rows if it is no terminal. */
struct screen {
    size_t width; /* at least SCREEN_WIDTH_MIN */
    size_t rows;
};
struct screen screen(void);

/* "950 us", "3.214 ms", "1.203 s" */
struct time_text {
    char text[24];
};
struct time_text time_text(int64_t us);

/* Local time, seconds with 3 or 6 digits after the point; ns 0: "at an unknown time". */
struct date_text {
    char text[64];
};
struct date_text date_text(int64_t ns, int digits);

/* Prints a document for a person. Leaves out integers that are 0 (except in tables), nulls and
 * empty values. */
void show_json(const json_t *json);

#endif
