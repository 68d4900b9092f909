/*
 * Copies the records of wanted traces out of rings, in one pass over each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_COPY_H
#define BLKIN_TOOLS_COPY_H

#include "fetch_order.h"

struct copy;

/* Returns NULL when out of memory. */
struct copy *copy_new(const struct fetch_order *order);
void copy_free(struct copy *copy); /* NULL is allowed */

/* All rings of all memories. Fills the result's counts and held_from_ns. Returns false with its
 * error set. */
bool copy_all(struct copy *copy, struct fetch_result *result);

/* The file "records". Returns false with the result's error set. */
bool copy_write(struct copy *copy, const char *path, struct fetch_result *result);

#endif
