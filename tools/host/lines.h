/*
 * The lines of a file that is kept open, and what is in them: words with blanks between.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_LINES_H
#define BLKIN_TOOLS_HOST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define LINES_BYTES 65536 /* of a line, with its \n */

struct lines {
    char *buffer; /* LINES_BYTES */
    int fd;
    bool is_whole; /* the kernel gives the whole file to one read, if it fits */
    bool is_end;
    bool is_cut;     /* what comes next is the rest of a line that was too long */
    int error;       /* errno of a read that failed; after that there are no lines */
    size_t too_long; /* lines, which are left out */
    off_t offset;
    size_t begin; /* in the buffer: what was read and not yet given */
    size_t end;
};

void lines_begin(struct lines *lines, int fd, bool is_whole);

/* A piece of text: not ended by \0, and any bytes but that of the line's end. */
struct text {
    const char *at;
    const char *end;
};

/* It is in the buffer until the next call. */
bool lines_next(struct lines *lines, struct text *line);

static inline size_t text_length(struct text text)
{
    return (size_t)(text.end - text.at);
}

static inline bool text_is(struct text text, const char *other, size_t length)
{
    return text_length(text) == length && memcmp(text.at, other, length) == 0;
}

static inline bool text_begins(struct text text, const char *other, size_t length)
{
    return text_length(text) >= length && memcmp(text.at, other, length) == 0;
}

/* of a literal */
#define TEXT_IS(text, literal)     text_is(text, literal, sizeof(literal) - 1)
#define TEXT_BEGINS(text, literal) text_begins(text, literal, sizeof(literal) - 1)

/* The next word, which is taken off the line. false: there is no more. */
static inline bool text_word(struct text *line, struct text *word)
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
static inline bool text_number(struct text text, uint64_t *number)
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

static inline bool text_next_number(struct text *line, uint64_t *number)
{
    struct text word;

    return text_word(line, &word) && text_number(word, number);
}

/* The numbers that the line goes on with, at most `most`. */
static inline size_t text_numbers(struct text *line, uint64_t *numbers, size_t most)
{
    size_t count = 0;

    while (count < most && text_next_number(line, &numbers[count]))
        count++;
    return count;
}

#endif
