/*
 * The annotations that close a span of the original's events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_CLOSING_H
#define BLKIN_CORE_CLOSING_H

#include "text.h"

#include <stdint.h>

#define CLOSING_MAX      16
#define CLOSING_TEXT_MAX 63

/* All zero: none. */
struct closing {
    uint64_t lengths; /* bit n: there is one of n bytes. Most annotations go no further than this */
    unsigned count;
    uint8_t length[CLOSING_MAX];
    char texts[CLOSING_MAX][CLOSING_TEXT_MAX];
};

/* Returns false for an empty text, one of more than CLOSING_TEXT_MAX bytes, or one too many. */
bool closing_add(struct closing *closing, struct text text);

bool closing_has(const struct closing *closing, struct text text);

#endif
