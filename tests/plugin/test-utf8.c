/*
 * Compares utf8_put() with a definition by code points: for each first and second byte, and for
 * third and fourth bytes at the limits of their ranges.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/utf8.h"
#include "check.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns the length of a sequence with this first byte; 0: no sequence begins with the byte. */
static size_t length_of(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
}

/* Do the bytes begin with the shortest form of a code point that is no surrogate? */
static bool is_valid(const unsigned char *bytes, size_t count)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t length = length_of(bytes[0]);
    uint32_t point;

    if (!length || count < length)
        return false;
    point = length == 1 ? bytes[0] : bytes[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2)
            return false;
        point = point << 6 | (bytes[i] & 0x3f);
    }
    return point >= least[length] && point <= 0x10ffff && point >> 11 != 0x1b;
}

/* Could more bytes complete a valid sequence? */
static bool can_become_valid(const unsigned char *bytes, size_t count)
{
    const size_t length = length_of(bytes[0]);
    unsigned char whole[4];
    /* second bytes at all limits; any valid third and fourth bytes give the same result */
    static const unsigned char more[] = {0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf};

    if (count >= length)
        return false;
    for (size_t second = 0; second < sizeof(more); second++) {
        memset(whole, 0x80, sizeof(whole));
        whole[1] = more[second];
        memcpy(whole, bytes, count);
        if (is_valid(whole, length))
            return true;
    }
    return false;
}

/* Returns the length of the longest beginning that more bytes could make valid, and at least 1. */
static size_t invalid_part(const unsigned char *bytes, size_t count)
{
    size_t taken = 1;

    while (taken < count && can_become_valid(bytes, taken + 1))
        taken++;
    return taken;
}

static void check(const unsigned char *bytes, size_t count)
{
    char out[8] = "", *at = out;
    const size_t taken = utf8_put(&at, (const char *)bytes, count);
    const bool valid = is_valid(bytes, count);

    *at = '\0';
    CHECK(taken == (valid ? length_of(bytes[0]) : invalid_part(bytes, count)));
    CHECK((size_t)(at - out) == (valid ? taken : 3));
    CHECK(memcmp(out, valid ? (const char *)bytes : UTF8_REPLACEMENT, (size_t)(at - out)) == 0);
}

TEST(test_each_sequence)
{
    static const unsigned char last[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    const size_t kinds = sizeof(last);

    for (unsigned lead = 0; lead < 256; lead++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t i = 0; i < kinds * kinds; i++) {
                const unsigned char bytes[] = {(unsigned char)lead, (unsigned char)second,
                                               last[i % kinds], last[i / kinds]};

                for (size_t count = 1; count <= sizeof(bytes); count++)
                    check(bytes, count);
            }
        }
    }
}

TEST(test_beginning)
{
    static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x99z";
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

    for (size_t limit = 0; limit < sizeof(ends) / sizeof(ends[0]) - 1; limit++)
        CHECK(utf8_beginning(text_of(text), limit).length == ends[limit]);
    /* a text that is no UTF-8 loses three bytes at most */
    CHECK(utf8_beginning(text_of("\x80\x80\x80\x80\x80\x80"), 5).length == 2);
}

CHECK_MAIN
