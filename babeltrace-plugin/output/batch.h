/*
 * A batch: finished spans that wait together, one after the other in one block of memory, which is
 * written by one thread's processor and read by another's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_BATCH_H
#define BLKIN_OUTPUT_BATCH_H

#include "../core/span.h"
#include "../buffer.h"

struct batch {
    struct batch *next;
    struct buffer buffer; /* each span is followed by its log */
    uint32_t count;
    int64_t first_ms; /* when the first span came */
};

/* Returns NULL when out of memory. */
struct batch *batch_new(void);

/* NULL is allowed. */
void batch_free(struct batch *batch);

/* Empties it; the memory is kept. */
void batch_reset(struct batch *batch);

/* Adds a copy of the span. Returns false, batch unchanged, when out of memory. */
bool batch_add(struct batch *batch, const struct span *span);

/* The span at *offset, 0 being the first one's, which moves on to the next. NULL: there is none. */
const struct span *batch_span(struct batch *batch, size_t *offset);

#endif
