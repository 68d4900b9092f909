/*
 * A label of Prometheus' text format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "label.h"

/* Bytes that follow the first one of a sequence of UTF-8; 0: there is none. */
static size_t sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0)
        return 2;
    if (first >= 0xe0 && first < 0xf0)
        return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Is it one whole character, in its only right form? */
static bool is_character(const unsigned char *bytes, size_t length, size_t left)
{
    if (length == 0 || length > left)
        return false;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return false;
    }
    return !(bytes[0] == 0xe0 && bytes[1] < 0xa0) && !(bytes[0] == 0xed && bytes[1] > 0x9f) &&
           !(bytes[0] == 0xf0 && bytes[1] < 0x90) && !(bytes[0] == 0xf4 && bytes[1] > 0x8f);
}

void print_label(struct printer *page, const char *key, struct text value)
{
    print(page, "%s=\"", key);
    for (size_t i = 0; i < value.length;) {
        const unsigned char *at = (const unsigned char *)value.data + i;
        const size_t length = sequence_length(*at);

        if (!is_character(at, length, value.length - i)) {
            print_string(page, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (*at == '\n')
            print_string(page, "\\n");
        else if (*at == '\\' || *at == '"')
            print(page, "\\%c", *at);
        else
            print_text(page, value.data + i, length);
        i += length;
    }
    print_string(page, "\"");
}
