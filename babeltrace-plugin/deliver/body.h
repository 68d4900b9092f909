/*
 * A body: encoded spans in one block of memory. Any consecutive spans of it can be sent alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_BODY_H
#define BLKIN_DELIVER_BODY_H

#include "babeltrace-plugin/encode/encoder.h"

#include <stdint.h>

struct body {
    struct buffer buffer; /* encoder->open, units with separators, and room for encoder->close */
    uint32_t *starts;     /* where each unit begins */
    uint32_t count;
    size_t starts_room;
    uint64_t group; /* the group that the next unit may share: see encoder.h */
};

/* Frees the body's memory. Zeros are an empty body. */
void body_destroy(struct body *body);

/* Empties the body; it keeps its memory. */
void body_reset(struct body *body);

/* Returns false when out of memory: the body stays as it is. */
bool body_add(struct body *body, struct encoder *encoder, const struct span *span, bool *cut);

/* The spans of a body from first up to end (not included), which are sent or spooled together. */
struct body_run {
    struct body *body;
    uint32_t first;
    uint32_t end;
    bool is_half;     /* a half of a run that was refused */
    bool is_arranged; /* made by arrange() of the transport: all spans are of this partition */
    uint32_t partition, partitions;
};

static inline uint32_t body_run_length(struct body_run run)
{
    return run.end - run.first;
}

/* Returns unit i. Only the first unit of a group has the head of its group. */
struct text body_unit(const struct body *body, const struct encoder *encoder, uint32_t i);

/* Appends a unit of another body, behind a head or an empty text. Returns false when out of memory:
 * the body stays as it is. */
bool body_append(struct body *body, const struct encoder *encoder, struct text head,
                 struct text unit);

/* Removes the last span; others must remain. */
void body_remove_last(struct body *body, const struct encoder *encoder);

/*
 * Adds spans that are encoded already. body_reserve() makes room for the spans, whose text has
 * `length` bytes with the separators. It returns the address for the text, or NULL when out of
 * memory. The caller writes the text there and the starts, as offsets in the text, into
 * body->starts. Then the caller calls body_fill().
 */
char *body_reserve(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length);
void body_fill(struct body *body, const struct encoder *encoder, uint32_t spans, size_t length);

/* Returns the length of the whole framed body. */
size_t body_length(const struct body *body, const struct encoder *encoder);

/* A framed run. */
struct payload {
    struct text text;               /* an encoded batch */
    struct text spans;              /* the spans and separators in it, without the frame */
    uint32_t partition, partitions; /* of the run */
    bool stays;                     /* the text stays unchanged until await() returns */
};

/*
 * Frames a run in place, and allocates nothing. The frame overwrites bytes before the first span,
 * so the caller frames runs from left to right; but runs that share no group can be framed in any
 * order. The frame also overwrites bytes after the last span, which body_unframe() restores. A run
 * can be framed several times, and a framed run can be sent several times.
 */
struct framed {
    struct payload payload;
    char *end;
    char saved[16];
};

void body_frame(struct body_run run, const struct encoder *encoder, struct framed *framed);
void body_unframe(const struct encoder *encoder, const struct framed *framed);

#endif
