/*
 * A short list, searched from one end to the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "closing.h"

bool closing_add(struct closing *closing, struct text text)
{
    if (text.length == 0 || text.length > CLOSING_TEXT_MAX || closing->count == CLOSING_MAX)
        return false;
    memcpy(closing->texts[closing->count], text.data, text.length);
    closing->length[closing->count++] = (uint8_t)text.length;
    closing->lengths |= UINT64_C(1) << text.length;
    return true;
}

bool closing_has(const struct closing *closing, struct text text)
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
