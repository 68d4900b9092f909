/*
 * A set of texts that forgets old ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SEEN_H
#define BLKIN_TOOLS_SEEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* It remembers a text for keep_ms to twice that time. If more than 65,536 texts come within
 * keep_ms, it forgets the oldest ones sooner. Begin with zeros and keep_ms. */
struct seen {
    int64_t keep_ms;
    int64_t turned_ms;
    json_t *young, *old;
};

void seen_clear(struct seen *seen);

/* Is the text in the set? Puts it in. When out of memory, returns false. */
bool seen_before(struct seen *seen, const char *text, int64_t now_ms);

#endif
