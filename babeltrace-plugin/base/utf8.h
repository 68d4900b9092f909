/*
 * Texts from traces as valid UTF-8, with U+FFFD in place of invalid bytes (Unicode 15, 3.9,
 * "substitution of maximal subparts").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_UTF8_H
#define BLKIN_BASE_UTF8_H

#include "text.h"

#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Writes the first sequence, or U+FFFD if it is invalid or incomplete. Returns the number of bytes
 * read, up to length, which is not 0. */
size_t utf8_put(char **at, const char *bytes, size_t length);

/* Returns the first limit bytes, or up to three fewer to end at a whole character. The byte after
 * the first limit bytes must be readable. */
struct text utf8_beginning(struct text text, size_t limit);

bool utf8_is_valid(struct text text);

/* Decodes the string's first character. Returns its length; 0: invalid, *code is the first byte. */
size_t utf8_decode(const char *string, uint32_t *code);

#endif
