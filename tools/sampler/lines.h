/*
 * The lines of a file that is kept open, and what is in them: words with blanks between.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_LINES_H
#define BLKIN_SAMPLER_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define LINES_BYTES 65536 /* of a line, with its \n */
#define DIGITS_SAFE 20    /* so many may not fit into 64 bits */

struct lines {
    char *buffer; /* LINES_BYTES */
    int fd;
    size_t record; /* of the file, at most */
    size_t ask;    /* so many bytes first, as the rest may not be needed; 0: all */
    bool is_end;
    bool is_cut;     /* what comes next is the rest of a line that was too long */
    int error;       /* errno of a read that failed; after that there are no lines */
    size_t too_long; /* lines, which are left out */
    off_t offset;
    size_t begin; /* in the buffer: what was read and not yet given */
    size_t end;
};

/*
 * record: how long the pieces are at most that the kernel writes such a file from. A read gives a
 * page of them; with less than that was room for another piece, and there is none. WHOLE: the
 * file is one piece.
 */
#define RECORD_WHOLE 0
#define RECORD_LINE  256
#define RECORD_ANY   SIZE_MAX
void lines_begin(struct lines *lines, int fd, size_t record);

/* A piece of a line: not ended by \0, and any bytes but that of the line's end. */
struct piece {
    const char *at;
    const char *end;
};

/* It is in the buffer until the next call. */
bool lines_next(struct lines *lines, struct piece *line);

/* Bytes of the file before the next line. */
static inline size_t lines_offset(const struct lines *lines)
{
    return (size_t)lines->offset - (lines->end - lines->begin);
}

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

/* of a literal */
#define PIECE_IS(text, literal)     piece_is(text, literal, sizeof(literal) - 1)
#define PIECE_BEGINS(text, literal) piece_begins(text, literal, sizeof(literal) - 1)

/* The next word, which is taken off the line. false: there is no more. */
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

/* The whole text is a decimal number that fits. */
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

/* The numbers that the line goes on with, at most `most`, which are taken off it. This is what most
 * of the reading costs. */
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
