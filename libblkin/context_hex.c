/*
 * The table of hexadecimal digits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "context_hex.h"

/* clang-format off */
const unsigned char blkin_hex_value[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13,
    ['4'] = 0x14, ['5'] = 0x15, ['6'] = 0x16, ['7'] = 0x17,
    ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1a, ['b'] = 0x1b,
    ['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f,
};
/* clang-format on */
