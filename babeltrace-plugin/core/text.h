/*
 * A borrowed piece of text: not NUL-terminated, any bytes, any length.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_TEXT_H
#define BLKIN_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *data; /* never NULL where length > 0 */
    size_t length;
};

static inline struct text text_of(const char *string)
{
    return (struct text){string, string ? strlen(string) : 0};
}

/*
 * Most texts are short names, which are compared and copied several times for each event: a call
 * costs more. The two halves of 8 to 16, or 4 to 7, bytes overlap, so that no length needs a loop.
 */
static inline char *text_copy(char *at, struct text text)
{
    uint64_t eight[2];
    uint32_t four[2];

    if (text.length > 16) {
        memcpy(at, text.data, text.length);
    } else if (text.length >= 8) {
        memcpy(&eight[0], text.data, 8);
        memcpy(&eight[1], text.data + text.length - 8, 8);
        memcpy(at, &eight[0], 8);
        memcpy(at + text.length - 8, &eight[1], 8);
    } else if (text.length >= 4) {
        memcpy(&four[0], text.data, 4);
        memcpy(&four[1], text.data + text.length - 4, 4);
        memcpy(at, &four[0], 4);
        memcpy(at + text.length - 4, &four[1], 4);
    } else {
        for (size_t i = 0; i < text.length; i++)
            at[i] = text.data[i];
    }
    return at + text.length;
}

static inline bool text_equal_8_to_16(const char *a, const char *b, size_t length)
{
    uint64_t a_halves[2], b_halves[2];

    memcpy(&a_halves[0], a, 8);
    memcpy(&b_halves[0], b, 8);
    memcpy(&a_halves[1], a + length - 8, 8);
    memcpy(&b_halves[1], b + length - 8, 8);
    return a_halves[0] == b_halves[0] && a_halves[1] == b_halves[1];
}

static inline bool text_equal_4_to_7(const char *a, const char *b, size_t length)
{
    uint32_t a_halves[2], b_halves[2];

    memcpy(&a_halves[0], a, 4);
    memcpy(&b_halves[0], b, 4);
    memcpy(&a_halves[1], a + length - 4, 4);
    memcpy(&b_halves[1], b + length - 4, 4);
    return a_halves[0] == b_halves[0] && a_halves[1] == b_halves[1];
}

static inline bool text_equal(struct text a, struct text b)
{
    if (a.length != b.length)
        return false;
    if (a.length > 16)
        return memcmp(a.data, b.data, a.length) == 0;
    if (a.length >= 8)
        return text_equal_8_to_16(a.data, b.data, a.length);
    if (a.length >= 4)
        return text_equal_4_to_7(a.data, b.data, a.length);
    for (size_t i = 0; i < a.length; i++) {
        if (a.data[i] != b.data[i])
            return false;
    }
    return true;
}

static inline bool text_is(struct text text, const char *string)
{
    return text_equal(text, text_of(string));
}

#endif
