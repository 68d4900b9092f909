/*
 * Names as numbers. Services and span names repeat, so they are compared, hashed and stored as 32
 * bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_NAMES_H
#define BLKIN_ANALYSIS_NAMES_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/* The empty name: not known. */
#define NAMES_NONE 0U

/* The id of each new name once the table is full. */
#define NAMES_OTHER 1U

struct names;

/* max: the number of names, with the two above. max_bytes: of all names. Returns NULL when out of
 * memory. */
struct names *names_new(uint32_t max, size_t max_bytes);
void names_free(struct names *names);

/* Returns the id of the text: any bytes. Copies a new text. Out of memory: NAMES_OTHER. */
uint32_t names_id(struct names *names, struct text text);

/* Returns a text that ends in NUL and lives as long as names. NAMES_NONE and NAMES_OTHER have the
 * text "". */
struct text names_text(const struct names *names, uint32_t id);

uint32_t names_count(const struct names *names);

/* Removes all but NAMES_NONE and NAMES_OTHER. */
void names_clear(struct names *names);

#endif
