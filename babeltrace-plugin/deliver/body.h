/*
 * A body: encoded spans in one block of memory, any run of which can be sent by itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_BODY_H
#define BLKIN_OUTPUT_BODY_H

#include "babeltrace-plugin/encode/encoder.h"
#include "transport.h"

#include <stdint.h>

struct body {
    struct buffer buffer; /* open, then the units with separators; there is room for close */
    uint32_t *starts;     /* where each unit begins */
    uint32_t count;
    uint32_t starts_capacity;
    uint64_t group; /* that the next unit may share: see encoder.h */
};

/* Frees what is in it: zeros are an empty one. */
void body_destroy(struct body *body);

/* Empties it; the memory is kept. */
void body_reset(struct body *body);

/* Returns false, body unchanged, when out of memory. */
bool body_add(struct body *body, struct encoder *encoder, const struct span *span, bool *cut);

/*
 * The next span begins a batch: runs on both sides of it may be framed in any order, since neither
 * is written over for the other's sake.
 */
void body_divide(struct body *body);

/* Unit i as it is, with the head of its group only if it is the first one. */
struct text body_unit(const struct body *body, const struct encoder *encoder, uint32_t i);

/* Appends a copy of unit i of another body, which shares nothing with its neighbours here. Returns
 * false, `to` unchanged, when out of memory. */
bool body_copy(struct body *to, const struct body *from, const struct encoder *encoder, uint32_t i);

/* Takes the last of several spans out again. */
void body_remove_last(struct body *body, const struct encoder *encoder);

/*
 * For who has encoded spans: room for so many, and so many bytes of text with the separators.
 * Returns where the text goes, the starts go to body->starts; NULL when out of memory. Then
 * body_fill() takes both in, the starts being those in the text.
 */
char *body_reserve(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length);
void body_fill(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length);

/* Once it is framed. */
size_t body_length(const struct body *body, const struct encoder *encoder);

/*
 * Frames the spans from first up to, not including, end in place, without memory. For that what is
 * before them is written over, so runs must be framed from left to right; body_unframe() restores
 * what is after them. Several attempts to send one run need no new framing.
 */
struct framed {
    struct payload payload;
    char *end;
    char saved[16];
};

void body_frame(struct body *body, const struct encoder *encoder, uint32_t first, uint32_t end,
                struct framed *framed);
void body_unframe(const struct encoder *encoder, const struct framed *framed);

#endif
