/*
 * A batch: encoded spans in one block of memory, any run of which can be sent by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_BATCH_H
#define BLKIN_OUTPUT_BATCH_H

#include "encoder.h"
#include "transport.h"

#include <stdint.h>

struct batch {
    struct batch *next;
    struct buffer buffer; /* open, then the spans with separators; there is room for close */
    uint32_t *starts;     /* where each span begins */
    uint32_t count;
    uint32_t starts_capacity;
    int64_t first_ms; /* when the first span came */
};

/* Returns NULL when out of memory. */
struct batch *batch_new(void);
void batch_free(struct batch *batch);

/* Empties it; the memory is kept. */
void batch_reset(struct batch *batch);

/* Returns false, batch unchanged, when out of memory. */
bool batch_add(struct batch *batch, struct encoder *encoder, const struct span *span, bool *cut);

/* Moves the last span of a batch to an empty one. Returns false, both unchanged, out of memory. */
bool batch_move_last(struct batch *from, struct batch *to, const struct encoder *encoder);

/*
 * Frames the spans from first up to, not including, end in place, without memory. For that open is
 * written over what is before them, so runs must be framed from left to right; batch_unframe()
 * restores what is after them. Several attempts to send one run need no new framing.
 */
struct framed {
    struct payload payload;
    char *end;
    char saved[16];
};

void batch_frame(struct batch *batch, const struct encoder *encoder, uint32_t first, uint32_t end,
                 struct framed *framed);
void batch_unframe(const struct encoder *encoder, const struct framed *framed);

#endif
