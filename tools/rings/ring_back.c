/*
 * The walk from the newest record to the oldest.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_back.h"

#include <stdlib.h>
#include <string.h>

#define BACK_PIECE ((uint64_t)1 << 18) /* stays in the processor's cache */

struct back {
    struct ring ring;
    uint64_t at;     /* between two records: all later ones were given */
    uint64_t from;   /* the position of the copy's first byte */
    uint64_t end;    /* where the walk began */
    uint64_t oldest; /* bytes before this position may be torn */
    char copy[BACK_PIECE];
};

enum back_step { BACK_RECORD, BACK_PIECE_ENDS, BACK_DAMAGED };

/* Writers may have changed the bytes before this position while we copied. Uses the later of `end`
 * and the ring's end: a program may have moved the ring's end back. */
static uint64_t back_oldest(struct ring ring, uint64_t end)
{
    const uint64_t now = ring_end(ring), newest = now > end ? now : end;
    const uint64_t whole = ring.size - RING_RECORD_MAX;

    return newest > whole ? newest - whole : 0;
}

static void back_copy(struct back *back)
{
    const uint64_t start = back->at > BACK_PIECE ? back->at - BACK_PIECE : 0;

    back->oldest = back_oldest(back->ring, back->end);
    back->from = start > back->oldest ? start : back->oldest;
    if (back->from >= back->at)
        return;
    ring_copy(back->ring, back->from, back->at, back->copy);
    back->oldest = back_oldest(back->ring, back->end);
}

/* Reads the record that ends at back->at. *size: bytes of the record with its trailer. */
static enum back_step back_step(const struct back *back, struct ring_entry *entry, uint64_t *size)
{
    const uint64_t first = back->from > back->oldest ? back->from : back->oldest;
    uint64_t trailer;

    if (back->at < first + RING_TRAILER_SIZE)
        return BACK_PIECE_ENDS;
    memcpy(&trailer, back->copy + (back->at - RING_TRAILER_SIZE - back->from), sizeof(trailer));
    *size = ring_size_by(trailer, back->at - RING_TRAILER_SIZE);
    if (!*size)
        return BACK_DAMAGED;
    if (*size > back->at - first)
        return BACK_PIECE_ENDS;
    *entry = ring_entry_of(back->copy + (back->at - *size - back->from), trailer);
    return BACK_RECORD;
}

/* Gives all records of a piece. Returns false at the end of the walk. */
static bool back_give_piece(struct back *back, ring_back_fn *give, void *context,
                            struct ring_back *result)
{
    const uint64_t begun_at = back->at;
    struct ring_entry entry;
    enum back_step step;
    uint64_t size;

    while ((step = back_step(back, &entry, &size)) == BACK_RECORD) {
        back->at -= size;
        result->bytes += size;
        if (entry.event == RING_PAD)
            continue;
        result->records++;
        if (!give(context, &entry, back->at))
            return false;
    }
    result->is_damaged = step == BACK_DAMAGED;
    return step != BACK_DAMAGED && back->at != begun_at;
}

bool ring_walk_back(struct ring ring, uint64_t end, ring_back_fn *give, void *context,
                    struct ring_back *result)
{
    struct back *back = malloc(sizeof(*back));

    *result = (struct ring_back){.records = 0};
    if (!back)
        return false;
    back->ring = ring;
    back->at = back->end = end;
    do
        back_copy(back);
    while (back->from < back->at && back_give_piece(back, give, context, result));
    result->is_cut = back->oldest > 0;
    free(back);
    return true;
}

/* ---- the oldest ------------------------------------------------------------------------------ */

bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry)
{
    const uint64_t end = ring_end(ring), from = back_oldest(ring, end);
    const uint64_t length = end - from < RING_OLDEST_BYTES ? end - from : RING_OLDEST_BYTES;
    uint64_t begin = 0, trailer, size;

    if (!from || end <= from)
        return false;
    ring_copy(ring, from, from + length, copy);
    /* two trailers enclose a record if the length in the second one is right */
    for (uint64_t at = 0; at + RING_TRAILER_SIZE <= length; at += 8) {
        memcpy(&trailer, copy + at, sizeof(trailer));
        size = ring_size_by(trailer, from + at);
        if (from + at < back_oldest(ring, end) || !size)
            continue;
        if (begin && ring_event_of(trailer) != RING_PAD && size == at + RING_TRAILER_SIZE - begin) {
            *entry = ring_entry_of(copy + begin, trailer);
            return from + begin >= back_oldest(ring, end);
        }
        begin = at + RING_TRAILER_SIZE;
    }
    return false;
}
