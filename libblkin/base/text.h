/*
 * Texts of policies and configurations. Libc's string functions only: the command reads some of
 * them, too.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TEXT_H
#define BLKIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define BLKIN_BLANKS " \t"

/* A text without the blanks around it, which are cut off. */
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

/* "*" stands for any text, also with slashes; "?" for any byte. */
static inline bool blkin_glob_fits(const char *glob, const char *text)
{
    const char *star = NULL; /* what follows the last one ... */
    const char *from = text; /* ... and where that is tried */

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
