/*
 * The common part of the trace context formats: hexadecimal numbers, implied flags.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CONTEXT_HEX_H
#define BLKIN_CONTEXT_HEX_H

#include "blkin_context.h"

#include <string.h>

/* The value of a lower-case hex digit with BLKIN_HEX_DIGIT set; 0 for any other character. */
#define BLKIN_HEX_DIGIT 0x10u
extern __attribute__((visibility("hidden"))) const unsigned char blkin_hex_value[256];

/* The two digits of each byte from 0 to 255, one after the other. */
extern __attribute__((visibility("hidden"))) const char blkin_hex_pairs[513];

/* Reads up to 16 digits. Clears *valid if a character is no digit. The caller tests *valid once,
 * after the last number, so that well-formed input takes no branch per character. */
static inline uint64_t blkin_hex_read(const char *text, unsigned digits, unsigned *valid)
{
    unsigned all = BLKIN_HEX_DIGIT;
    uint64_t number = 0;

    for (unsigned i = 0; i < digits; i++) {
        unsigned digit = blkin_hex_value[(unsigned char)text[i]];

        all &= digit;
        number = number << 4 | (digit & 0xf);
    }
    *valid &= all != 0;
    return number;
}

/* Writes 16 digits, and returns the end of the text. */
static inline char *blkin_hex_write(char *text, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        memcpy(text + 2 * i, blkin_hex_pairs + 2 * (number >> (56 - 8 * i) & 0xff), 2);
    return text + 16;
}

/* Returns 1 if the trace is sampled: DEBUG implies SAMPLED. */
static inline int blkin_context_is_sampled(const struct blkin_context *context)
{
    return (context->flags & (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DEBUG)) != 0;
}

#endif
