/*
 * Inside of the reader of rules: the file at hand, and the words of a line.
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
    size_t points_before;   /* of other files */
    struct span_rule *rule; /* the section at hand: one of the two, or none yet */
    struct rule_lookup *lookup;
};

/* Sets the error, with file and line, and returns false. */
bool rules_fail(struct rules_reader *reader, const char *expected, struct text got);

/* Memory that lives as long as the rules, all zero. NULL with the error set. */
void *rules_alloc(struct rules_reader *reader, size_t size);

/* Room for one more in an array whose length is a power of two when it is full. NULL with the
 * error set; the new one is all zero. */
void *rules_grow(struct rules_reader *reader, void *array, size_t count, size_t size);

/* ---- rules.c ---- */

/* The lines of one file. */
bool rules_add(struct rules_reader *reader, struct text text);

/* When all is read: what one line does not show. */
bool rules_check(struct rules_reader *reader);

/* ---- words.c: what is at the right of a "=". All return false with the error set. ------------ */

bool rules_read_field(struct rules_reader *reader, struct text text, uint16_t *field);
bool rules_read_fields(struct rules_reader *reader, struct text text, struct rule_fields *fields);
bool rules_read_template(struct rules_reader *reader, struct text text,
                         struct rule_template *template);
bool rules_read_tags(struct rules_reader *reader, struct text text, struct span_rule *rule);
bool rules_read_condition(struct rules_reader *reader, struct text text,
                          struct rule_condition *condition);
bool rules_read_time(struct rules_reader *reader, struct text text, int64_t *ns);
bool rules_read_point(struct rules_reader *reader, struct text text, struct rule_point *point);

/* Cuts text where " WORD " is in it, the last time: before is what was there, *text what comes
 * after it. False: it is not in it. */
bool rules_split_last(struct text *text, const char *word, struct text *before);

/* The next word of text, which is taken off; empty: there is none. */
struct text rules_next_word(struct text *text);

#endif
