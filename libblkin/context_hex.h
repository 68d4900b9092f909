/*
 * What the trace context formats share: hexadecimal numbers and the implied flags.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CONTEXT_HEX_H
#define BLKIN_CONTEXT_HEX_H

#include "blkin_context.h"

/* The value of a lower-case hex digit with BLKIN_HEX_DIGIT set; 0 for any other character. */
#define BLKIN_HEX_DIGIT 0x10u
extern __attribute__((visibility("hidden"))) const unsigned char blkin_hex_value[256];

/*
 * Reads up to 16 digits. Clears *valid if one of them is none: the caller looks at it once, after
 * the last number, so that well-formed input takes no branch per character.
 */
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

/* Writes 16 digits and returns the place behind them. */
static inline char *blkin_hex_write(char *text, uint64_t number)
{
    for (int i = 15; i >= 0; i--, number >>= 4)
        text[i] = "0123456789abcdef"[number & 0xf];
    return text + 16;
}

/* The flags with those that they imply. */
static inline uint32_t blkin_context_all_flags(const struct blkin_context *context)
{
    uint32_t flags = context->flags;

    if (flags & BLKIN_CONTEXT_DEBUG)
        flags |= BLKIN_CONTEXT_SAMPLED;
    if (flags & BLKIN_CONTEXT_SAMPLED)
        flags |= BLKIN_CONTEXT_DECIDED;
    return flags;
}

#endif
