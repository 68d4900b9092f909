/*
 * Functions for the texts of policies and configurations. The command `blkin` contains them, too,
 * so they use only libc's string functions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TEXT_H
#define BLKIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define BLKIN_BLANKS " \t"

/* Cuts the blanks off both ends of the text. */
static inline char *blkin_trimmed(char *text)
{
    size_t length;

    text += strspn(text, BLKIN_BLANKS);
    length = strlen(text);
    while (length > 0 && strchr(BLKIN_BLANKS, text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* Returns true if the glob matches. "*" matches any text, including slashes; "?" any byte. */
static inline bool blkin_glob_fits(const char *glob, const char *text)
{
    const char *star = NULL; /* the part of the glob after the last "*" ... */
    const char *from = text; /* ... and the part of the text with which it is compared */

    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            from = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++from;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

#endif
