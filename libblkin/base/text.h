/*
 * Helpers for the texts of policies and configurations. They use only libc's string functions,
 * because the command `blkin` reads such texts, too.
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

/* "*" matches any text, including slashes; "?" matches any byte. */
static inline bool blkin_glob_fits(const char *glob, const char *text)
{
    const char *star = NULL; /* the part of the glob after the last "*" ... */
    const char *from = text; /* ... and the place in the text where it is tried */

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
