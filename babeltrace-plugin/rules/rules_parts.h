/*
 * Private declarations of the rules reader: the current file, and the parsing of a line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_PARTS_H
#define BLKIN_RULES_PARTS_H

#include "rules.h"

struct rules_reader {
    struct rules *rules;
    struct error *error;
    const char *name; /* of the file: lives as long as the rules */
    unsigned line;
    size_t points_before;   /* the number of points of earlier files */
    struct span_rule *rule; /* the current section: one of the two, or none yet */
    struct rule_lookup *lookup;
};

/* Sets the error, with file and line, and returns false. */
bool rules_fail(struct rules_reader *reader, const char *expected, struct text got);

/* Returns zeroed memory that lives as long as the rules. NULL with the error set. */
void *rules_alloc(struct rules_reader *reader, size_t size);

/* Makes room for one more element in an array, whose room is a power of two. The new element is
 * zero. Returns NULL with the error set. */
void *rules_grow(struct rules_reader *reader, void *array, size_t count, size_t size);

/* ---- rules.c ---- */

/* Parses the lines of one file. */
bool rules_add(struct rules_reader *reader, struct text text);

/* Checks all rules at the end, for errors that no single line shows. */
bool rules_check(struct rules_reader *reader);

/* ---- words.c: values after "=". rules_read_*() return false with the error set. -------------- */

bool rules_read_field(struct rules_reader *reader, struct text text, uint16_t *field);
bool rules_read_fields(struct rules_reader *reader, struct text text, struct rule_fields *fields);
bool rules_read_template(struct rules_reader *reader, struct text text,
                         struct rule_template *template);
bool rules_read_tags(struct rules_reader *reader, struct text text, struct span_rule *rule);
bool rules_read_condition(struct rules_reader *reader, struct text text,
                          struct rule_condition *condition);
bool rules_read_time(struct rules_reader *reader, struct text text, int64_t *ns);
bool rules_read_point(struct rules_reader *reader, struct text text, struct rule_point *point);

/* Splits text at the last " WORD ": *before and *text get the two parts. Returns false if text has
 * no such word. */
bool rules_split_last(struct text *text, const char *word, struct text *before);

/* Removes the next word from text; empty: none. */
struct text rules_next_word(struct text *text);

#endif
