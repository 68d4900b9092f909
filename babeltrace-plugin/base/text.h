/*
 * A borrowed piece of text: any bytes, any length, not NUL-terminated.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_TEXT_H
#define BLKIN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    const char *data; /* not NULL if length > 0 */
    size_t length;
};

static inline struct text text_of(const char *string)
{
    return (struct text){string, string ? strlen(string) : 0};
}

/* Returns the first bytes, up to limit. */
static inline struct text text_cut(struct text text, size_t limit)
{
    return (struct text){text.data, text.length < limit ? text.length : limit};
}

/* Returns the text after its first `length` bytes. The text must be that long. */
static inline struct text text_after(struct text text, size_t length)
{
    return (struct text){text.data + length, text.length - length};
}

/* Returns the text before the first byte `end`, or all of the text. *text becomes the text after
 * that byte. */
static inline struct text text_take(struct text *text, char end)
{
    const char *at = text->length ? memchr(text->data, end, text->length) : NULL;
    const struct text taken = text_cut(*text, at ? (size_t)(at - text->data) : text->length);

    *text = text_after(*text, taken.length + (at != NULL));
    return taken;
}

/* Returns true for blanks in files that people write. */
static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Removes the blanks at both ends. */
static inline struct text text_trim(struct text text)
{
    while (text.length && text_is_blank(text.data[0]))
        text = text_after(text, 1);
    while (text.length && text_is_blank(text.data[text.length - 1]))
        text.length--;
    return text;
}

/* Removes a comment, then the blanks at both ends. A comment begins with a "#" at the beginning of
 * the line or after a blank. */
static inline struct text text_without_comment(struct text line)
{
    size_t length = 0;

    while (length < line.length &&
           (line.data[length] != '#' || (length && !text_is_blank(line.data[length - 1]))))
        length++;
    return text_trim(text_cut(line, length));
}

/* Reads a text that is all decimal digits. */
static inline bool text_read_number(struct text text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.length; i++) {
        const char digit = text.data[i];

        if (digit < '0' || digit > '9' || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(digit - '0'), number))
            return false;
    }
    return text.length > 0;
}

/* Reads 1 to 16 hexadecimal digits, upper or lower case. */
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

/* Reads a trace id of 1 to 32 hexadecimal digits, not all of them 0. */
static inline bool hex_read_trace(struct text digits, uint64_t *high, uint64_t *low)
{
    const size_t above = digits.length > 16 ? digits.length - 16 : 0;

    *high = 0;
    return (above == 0 || hex_read((struct text){digits.data, above}, high)) &&
           hex_read((struct text){digits.data + above, digits.length - above}, low) &&
           (*high || *low);
}

/* Returns the end of the copy. */
static inline char *text_copy(char *at, struct text text)
{
    if (text.length)
        memcpy(at, text.data, text.length);
    return at + text.length;
}

/* Copies the text to *at, moves *at to the end of the copy, and returns the copy. */
static inline struct text text_copy_to(char **at, struct text text)
{
    const struct text kept = {*at, text.length};

    *at = text_copy(*at, text);
    return kept;
}

static inline bool text_equal(struct text a, struct text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static inline bool text_begins(struct text text, const char *prefix)
{
    const size_t length = strlen(prefix);

    return text.length >= length && memcmp(text.data, prefix, length) == 0;
}

/* Compares bytes, as memcmp(3) and strcmp(3) do. */
static inline int text_compare(struct text a, struct text b)
{
    const size_t length = a.length < b.length ? a.length : b.length;
    const int order = length ? memcmp(a.data, b.data, length) : 0;

    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static inline bool text_is(struct text text, const char *string)
{
    return text_equal(text, text_of(string));
}

/* Replaces control characters, which would change the state of a terminal, by '?'. */
static inline void string_make_plain(char *string)
{
    for (char *c = string; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
}

/* Cuts off blanks at the end. Returns the first byte that is no blank. */
static inline char *string_trim(char *string)
{
    static const char blanks[] = " \t\r\v\f";
    size_t length;

    string += strspn(string, blanks);
    length = strlen(string);
    while (length > 0 && strchr(blanks, string[length - 1]))
        length--;
    string[length] = '\0';
    return string;
}

/* Appends an item to a list that has ", " between items, as far as there is room. */
static inline void string_list_add(char *list, size_t size, const char *item)
{
    const size_t length = strlen(list);

    if (length + 2 < size)
        (void)snprintf(list + length, size - length, "%s%.*s", length ? ", " : "",
                       (int)(size - length - 2), item);
}

/* Joins two strings. Returns NULL when out of memory; the caller frees the result. */
static inline char *string_joined(const char *string, const char *end)
{
    const struct text first = text_of(string), last = text_of(end);
    char *joined = malloc(first.length + last.length + 1);

    if (joined)
        *text_copy(text_copy(joined, first), last) = '\0';
    return joined;
}

#endif
