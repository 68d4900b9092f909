/*
 * A place is the list of the positions at which all rings ended at one time. With places, a scan
 * finds the position of a time in each ring, and skips the records that an earlier scan has read.
 *
 * Records before a place were written before the time of the place. The times in records do not
 * show that: a thread may be stopped after a span's end, before it writes the record.
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

/* Makes a place of the current ends of all rings. Returns the number of the place, from 1; 0: out
 * of memory. In a full list, removes every other place of the older half. */
uint64_t places_take(struct places *places, const struct held *first);

/* Makes a place if the last one is at least PLACES_EACH_MS old. */
void places_look(struct places *places, const struct held *first);

/* Returns the newest place that is not later than that time; 0: no place is that old. */
uint64_t places_before(const struct places *places, int64_t mono_ns);

/* Returns true if the list has the place. */
bool places_has(const struct places *places, uint64_t number);

/* Returns the end of one ring at the place. user, memory: the user and the number of the ring's
 * memory. Returns 0 if the memory did not exist then, or the list has no such place. */
uint64_t places_end(const struct places *places, uint64_t number, uint32_t user, uint64_t memory,
                    uint32_t cpu);

#endif
