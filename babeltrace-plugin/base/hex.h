/*
 * Trace ids and span ids in hexadecimal digits, upper or lower case.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HEX_H
#define BLKIN_CORE_HEX_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads 1 to 16 digits. */
static inline bool hex_read(struct text digits, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < digits.length; i++) {
        const char c = digits.data[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0)
            return false;
        *value = *value << 4 | (uint64_t)digit;
    }
    return digits.length >= 1 && digits.length <= 16;
}

/* Reads a trace id of 1 to 32 digits, not all of them 0. */
static inline bool hex_read_trace(struct text digits, uint64_t *high, uint64_t *low)
{
    const size_t above = digits.length > 16 ? digits.length - 16 : 0;

    *high = 0;
    return (above == 0 || hex_read((struct text){digits.data, above}, high)) &&
           hex_read((struct text){digits.data + above, digits.length - above}, low) &&
           (*high || *low);
}

#endif
