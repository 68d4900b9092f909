/*
 * Texts from traces as valid UTF-8: with U+FFFD in place of what is not (Unicode 15, 3.9,
 * "substitution of maximal subparts").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_UTF8_H
#define BLKIN_OUTPUT_UTF8_H

#include "text.h"

#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Writes the sequence that begins here, or U+FFFD for as much of it as is there, and returns the
 * bytes it took: of length, which is not 0. */
size_t utf8_put(char **at, const char *bytes, size_t length);

/* The text's first limit bytes, or up to three fewer: not half a sequence. */
struct text utf8_beginning(struct text text, size_t limit);

bool utf8_is_valid(struct text text);

/* The character at the beginning of a string, and how many bytes it has; 0: that is not UTF-8, and
 * *code is its first byte. */
size_t utf8_decode(const char *string, uint32_t *code);

#endif
