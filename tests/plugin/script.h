/*
 * Reads the words of a line of a script of events (see scripts/README.md), and numbers in them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_SCRIPT_H
#define TESTS_PLUGIN_SCRIPT_H

#include "babeltrace-plugin/base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SCRIPT_WORDS_MAX 64

/* key=value, or a value alone: then key is NULL. */
struct script_word {
    const char *key;
    struct text value; /* a NUL follows the text */
};

struct script_line {
    const char *file;
    unsigned number;
    unsigned count;
    struct script_word words[SCRIPT_WORDS_MAX];
};

/* Ends the test: the author has to repair a broken script. */
static inline _Noreturn void script_fail(const struct script_line *line, const char *what,
                                         const char *culprit)
{
    fprintf(stderr, "%s:%u: %s: %s\n", line->file, line->number, what, culprit);
    exit(2);
}

/* Reads one byte of quoted text: the byte itself, or an escape \" \\ \n \xHH. */
static inline char script_byte(const char **at)
{
    char digits[3] = {0};

    if (**at != '\\')
        return *(*at)++;
    (*at)++;
    if (**at == 'x' && (*at)[1] && (*at)[2]) {
        memcpy(digits, *at + 1, 2);
        *at += 3;
        return (char)strtoul(digits, NULL, 16);
    }
    return *(*at)++ == 'n' ? '\n' : (*at)[-1];
}

/* Reads a word in place, because its text is never longer than its source. */
static inline char *script_read_word(struct script_line *line, char *source)
{
    struct script_word *word = &line->words[line->count++];
    const char *at = source;
    char *to = source;
    bool quoted = false;

    *word = (struct script_word){NULL, {source, 0}};
    while (*at && (quoted || !isspace((unsigned char)*at))) {
        if (*at == '"') {
            quoted = !quoted;
            at++;
        } else if (*at == '=' && !quoted && !word->key) {
            word->key = word->value.data;
            *to++ = '\0';
            word->value.data = to;
            at++;
        } else {
            *to++ = quoted ? script_byte(&at) : *at++;
        }
    }
    if (quoted)
        script_fail(line, "no closing quote", source);
    word->value.length = (size_t)(to - word->value.data);
    at += *at != '\0';
    *to = '\0';
    return (char *)at;
}

static inline void script_read_line(struct script_line *line, char *source)
{
    line->count = 0;
    for (;;) {
        while (isspace((unsigned char)*source))
            source++;
        if (!*source || *source == '#')
            return;
        if (line->count == SCRIPT_WORDS_MAX)
            script_fail(line, "too many words from here on", source);
        source = script_read_word(line, source);
    }
}

/* Reads a number: signed or not, decimal or 0x..., with an optional unit of time. */
static inline uint64_t script_number(const struct script_line *line, const char *text)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    const uint64_t number =
        *text == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0)
            return number * units[i].factor;
    }
    script_fail(line, "not a number", text);
}

#endif
