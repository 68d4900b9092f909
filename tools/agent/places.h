/*
 * How far each fetch has read each ring, so that the next fetch of a trace goes on there. Times do
 * not tell it: a thread may be stopped between a span's end and the writing of its record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PLACES_H
#define BLKIN_TOOLS_PLACES_H

#include "tools/rings/holder.h"
#include "tools/rings/ring_read.h"

struct places;

/* Returns NULL when out of memory. */
struct places *places_new(void);
void places_free(struct places *places); /* NULL is allowed */

/* Where all rings end now: returns the number of this place, from 1. 0: out of memory. The oldest
 * places are forgotten. */
uint64_t places_take(struct places *places, const struct held *first);

/* Where that memory's ring of this CPU ended then. Returns false if that place is forgotten; *end:
 * 0 if the memory was not there. */
bool places_find(const struct places *places, uint64_t number, const struct held *held,
                 uint32_t cpu, uint64_t *end);

#endif
