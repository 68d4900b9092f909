/*
 * A place tells the ring position at which each ring ended at one time. With places, a scan finds
 * the position of a time in each ring, and skips the records that an earlier scan has read.
 *
 * A record at or after a place was written after the time of the place. The time of a record does
 * not tell that: a thread may be stopped after a span's end, before the program writes the record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PLACES_H
#define BLKIN_TOOLS_PLACES_H

#include "tools/rings/holder.h"
#include "tools/rings/ring_read.h"

#define PLACES_EACH_MS 200

struct places;

/* Returns NULL when out of memory. */
struct places *places_new(void);
void places_free(struct places *places); /* NULL is allowed */

/* Makes a place: notes where all rings end now. Returns the number of the place, from 1; 0: out of
 * memory. When the list is full, every other old place is removed. */
uint64_t places_take(struct places *places, const struct held *first);

/* Makes a place if the last one is at least PLACES_EACH_MS old. */
void places_look(struct places *places, const struct held *first);

/* Returns the newest place that is not later than that time; 0: no place is that old. */
uint64_t places_before(const struct places *places, int64_t mono_ns);

/* True if the place was not removed. */
bool places_has(const struct places *places, uint64_t number);

/* Returns where the ring of that CPU ended at the place. The ring is in a user's memory of that
 * number. Returns 0 if the memory did not exist then, or the place is not known. */
uint64_t places_end(const struct places *places, uint64_t number, uint32_t user, uint64_t memory,
                    uint32_t cpu);

#endif
