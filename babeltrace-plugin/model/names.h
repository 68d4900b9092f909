/*
 * Names as numbers: services and span names come again and again, and are compared, hashed and kept
 * as 32 bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_NAMES_H
#define BLKIN_ANALYSIS_NAMES_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/* The empty name: not known. */
#define NAMES_NONE 0U

/* What a name becomes for which there is no room: so it is for all that come later. */
#define NAMES_OTHER 1U

struct names;

/* Takes up to max names, these two among them, of max_bytes in all. Returns NULL when out of
 * memory. */
struct names *names_new(uint32_t max, size_t max_bytes);
void names_free(struct names *names);

/* The number of the text, which is copied if it is new. Any bytes. Out of memory: NAMES_OTHER. */
uint32_t names_id(struct names *names, struct text text);

/* The same, without taking it: NAMES_NONE if it is not there. */
uint32_t names_find(const struct names *names, struct text text);

/* Ends in NUL; lives as long as names. Of both NAMES_NONE and NAMES_OTHER: "". */
struct text names_text(const struct names *names, uint32_t id);

uint32_t names_count(const struct names *names);

/* Has there been a text without room? */
bool names_are_full(const struct names *names);

/* Only the first two are left. */
void names_clear(struct names *names);

#endif
