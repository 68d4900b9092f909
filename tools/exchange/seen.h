/*
 * What was seen lately: a set of texts that forgets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SEEN_H
#define BLKIN_TOOLS_SEEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A text is remembered for keep_ms at least, for twice as long at most, and the last 65,536 of
 * them only; all zero but that at first. */
struct seen {
    int64_t keep_ms;
    int64_t turned_ms;
    json_t *young, *old;
};

void seen_clear(struct seen *seen);

/* Was it there? Whether or not, it is now. Without memory it is new. */
bool seen_before(struct seen *seen, const char *text, int64_t now_ms);

/* The same, but nothing is put in. */
bool seen_has(struct seen *seen, const char *text, int64_t now_ms);

#endif
