/*
 * A short list of the annotations that close a span of the original's events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_CLOSING_H
#define BLKIN_CORE_CLOSING_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

#define CLOSING_MAX      16
#define CLOSING_TEXT_MAX 63

/* Zeros: none. */
struct closing {
    uint64_t lengths; /* bit n: an annotation has n bytes. This test rejects most annotations */
    unsigned count;
    uint8_t length[CLOSING_MAX];
    char texts[CLOSING_MAX][CLOSING_TEXT_MAX];
};

/* Returns false for an empty text, one of more than CLOSING_TEXT_MAX bytes, or a full list. */
static inline bool closing_add(struct closing *closing, struct text text)
{
    if (text.length == 0 || text.length > CLOSING_TEXT_MAX || closing->count >= CLOSING_MAX)
        return false;
    memcpy(closing->texts[closing->count], text.data, text.length);
    closing->length[closing->count++] = (uint8_t)text.length;
    closing->lengths |= UINT64_C(1) << text.length;
    return true;
}

static inline bool closing_has(const struct closing *closing, struct text text)
{
    if (text.length > CLOSING_TEXT_MAX || !(closing->lengths >> text.length & 1))
        return false;
    for (unsigned i = 0; i < closing->count; i++) {
        if (closing->length[i] == text.length && closing->texts[i][0] == text.data[0] &&
            memcmp(closing->texts[i], text.data, text.length) == 0)
            return true;
    }
    return false;
}

#endif
