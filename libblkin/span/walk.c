/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "walk.h"

/* Never more, also of a record that a signal handler finds half written. */
static size_t length_at(const char *digits)
{
    return (size_t)blkin_number_at(digits, 2) & 4095;
}

size_t blkin_record_size(const char *at)
{
    switch (*at) {
    case '(':
        return 11 + (length_at(at + 1) & 127);
    case ')':
    case 'T':
        return 9;
    case '#':
        return 5;
    case 's':
        return 5 + length_at(at + 1) + length_at(at + 3);
    case 'l':
        return 49;
    case 'r':
        return 21 + length_at(at + 17) + length_at(at + 19);
    case 'I':
    case 'U':
    case 'D':
    case 'B':
        return 14 + length_at(at + 1);
    default: /* an annotation */
        return 11 + length_at(at + 1);
    }
}

void blkin_walk_begin(struct walk *walk, const struct span *inside)
{
    walk->at = (const char *)inside + span_log_at(inside);
    walk->end = (const char *)inside + inside->used;
    walk->number = 0;
    walk->depth = 0;
}

const char *blkin_walk(struct walk *walk)
{
    const char *first = NULL;

    while (walk->at < walk->end) {
        const char *const record = walk->at;

        walk->at += blkin_record_size(record);
        if (*record == '#') {
            first = record;
            walk->number = (uint32_t)blkin_number_at(record + 1, 4) - 1;
        } else if (*record == '(' && walk->depth < SPAN_DEPTH_MAX) {
            walk->open[walk->depth++] =
                (struct walk_step){first ? first : record, record, ++walk->number};
            first = NULL;
        } else if (*record == ')' && walk->depth > 0) {
            walk->depth--;
            return record;
        }
    }
    return NULL;
}
