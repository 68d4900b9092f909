/*
 * Where all rings ended at moments of the past, by which a scan knows how far back a time is in
 * each ring, and what an earlier scan of a trace has read.
 *
 * A record at or after a place was written after the place's moment. Times of records do not tell
 * that: a thread may be stopped between a span's end and the writing of the span's record.
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

/* Notes where all rings end now, with the time of CLOCK_MONOTONIC. Returns the number of the place,
 * from 1; 0: out of memory. The older places are, the fewer are kept. */
uint64_t places_take(struct places *places, const struct held *first);

/* Notes a place PLACES_EACH_MS after the last one. */
void places_look(struct places *places, const struct held *first);

/* The newest place that was taken before that moment; 0: none is. */
uint64_t places_before(const struct places *places, int64_t mono_ns);

bool places_has(const struct places *places, uint64_t number);

/* Where that ring of a user's memory of that number ended then; 0 if the memory was not there, or
 * no such place is known. */
uint64_t places_end(const struct places *places, uint64_t number, uint32_t user, uint64_t memory,
                    uint32_t cpu);

#endif
