/*
 * The digits of packed texts: each function writes the same as a loop over the value, with the
 * instruction pdep and without. test-portable.sh runs the code for other processors.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tracepoints/format/digits.h"

#include "check.h"

#define DIGITS_ROUNDS 100000

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
bool blkin_has_pdep; /* the library's own is hidden */
#define set_pdep(value) (blkin_has_pdep = (value) && __builtin_cpu_supports("bmi2"))
#else
#define set_pdep(value) (void)(value)
#endif

/* Writes digits, the lowest first; returns the next position. */
static char *put(char *at, uint64_t value, unsigned bits, unsigned digits)
{
    while (digits-- > 0) {
        *at++ = (char)('0' + (value & ((1U << bits) - 1)));
        value >>= bits;
    }
    return at;
}

#define TEXT_24 24

/* Does each function write the same as the loop, and change no byte after the digits? */
static bool is_written_right(uint64_t value)
{
    char text[TEXT_24], expected[TEXT_24];
    bool right = true;

#define IS_SAME(call, reference)                                 \
    (memset(text, '~', TEXT_24), memset(expected, '~', TEXT_24), \
     right = right && (call)-text == (reference)-expected && memcmp(text, expected, TEXT_24) == 0)
    IS_SAME(blkin_put_word(text, value), put(expected, value, 6, 8));
    IS_SAME(blkin_put_digits16(text, value), put(expected, value, 4, 16));
    IS_SAME(blkin_put_length(text, value & 4095), put(expected, value & 4095, 6, 2));
    IS_SAME(blkin_put_short(text, value & 0x3ffff), put(expected, value & 0x3ffff, 6, 3));
#undef IS_SAME
    return right;
}

static void test_digits(void)
{
    uint64_t value = 1;
    char text[9] = "";

    /* as doc/format.md says: the least digit first, '0' to 'o' */
    *blkin_put_word(text, UINT64_C(0xfff000000041)) = '\0';
    CHECK_TEXT(text, "110000oo");

    CHECK(is_written_right(0));
    CHECK(is_written_right(UINT64_MAX));
    /* each value of each digit, while all other bits are 0, or 1 */
    for (unsigned bit = 0; bit < 64; bit += 2) {
        for (uint64_t digit = 0; digit < 64; digit++) {
            CHECK(is_written_right(digit << bit));
            CHECK(is_written_right(~(digit << bit)));
        }
    }
    for (int i = 0; i < DIGITS_ROUNDS && check_failures == 0; i++) {
        CHECK(is_written_right(value));
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
}

int main(void)
{
    set_pdep(true);
    test_digits();
    set_pdep(false);
    test_digits();
    return check_status();
}
