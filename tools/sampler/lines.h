/*
 * A file of the kernel, read as a whole: its lines, and their words. Blanks separate words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_LINES_H
#define BLKIN_SAMPLER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINES_BYTES (4 << 20) /* of a file; the rest is left out, as some files do not end */
#define DIGITS_SAFE 20        /* a number of this many digits may exceed 64 bits */

/* A part of a line, without \0 at its end. Any bytes except \n. */
struct piece {
    const char *at;
    const char *end;
};

struct lines {
    char *buffer; /* of LINES_BYTES bytes; the kernel provides pages on use */
    int error;    /* errno of a failed read, after which there are no lines */
    bool is_cut;  /* the file is longer than the buffer */
    struct piece rest;
};

/* Reads the file from its beginning. */
void lines_begin(struct lines *lines, int fd);

/* Sets *line, which is valid until the next lines_begin(). Returns false at the end. */
bool lines_next(struct lines *lines, struct piece *line);

static inline size_t piece_length(struct piece text)
{
    return (size_t)(text.end - text.at);
}

static inline bool piece_is(struct piece text, const char *other, size_t length)
{
    return piece_length(text) == length && memcmp(text.at, other, length) == 0;
}

static inline bool piece_begins(struct piece text, const char *other, size_t length)
{
    return piece_length(text) >= length && memcmp(text.at, other, length) == 0;
}

/* literal: a string literal */
#define PIECE_IS(text, literal)     piece_is(text, literal, sizeof(literal) - 1)
#define PIECE_BEGINS(text, literal) piece_begins(text, literal, sizeof(literal) - 1)

/* Removes the next word from the line. Returns false at the line's end. */
static inline bool piece_word(struct piece *line, struct piece *word)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t'))
        line->at++;
    word->at = line->at;
    while (line->at < line->end && *line->at != ' ' && *line->at != '\t')
        line->at++;
    word->end = line->at;
    return word->at < word->end;
}

/* Returns whether the whole text is a decimal number of 64 bits. */
static inline bool piece_number(struct piece text, uint64_t *number)
{
    uint64_t value = 0;

    if (text.at == text.end)
        return false;
    for (; text.at < text.end; text.at++) {
        const unsigned digit = (unsigned)(unsigned char)*text.at - '0';

        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

/* Removes the line's next numbers, at most `most`. Most of the time of a sample is spent here. */
static inline size_t piece_numbers(struct piece *line, uint64_t *numbers, size_t most)
{
    const char *const end = line->end;
    const char *at = line->at;
    size_t count = 0;

    while (count < most) {
        uint64_t value = 0;
        const char *digits;
        unsigned digit;

        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        for (digits = at; at < end && (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++)
            value = value * 10 + digit;
        if (at == digits || (at < end && *at != ' ' && *at != '\t'))
            break;
        if (at - digits >= DIGITS_SAFE && !piece_number((struct piece){digits, at}, &value))
            break;
        line->at = at;
        numbers[count++] = value;
    }
    return count;
}

static inline bool piece_next_number(struct piece *line, uint64_t *number)
{
    return piece_numbers(line, number, 1) == 1;
}

#endif
