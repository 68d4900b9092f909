/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_back.h"

#include <string.h>

enum back_step { BACK_RECORD, BACK_PIECE_ENDS, BACK_DAMAGED };

/* Returns the position before which programs may be changing bytes now. Uses `end` if it is later
 * than the ring's end, because a program may have moved the ring's end back. */
static uint64_t back_intact_from(struct ring ring, uint64_t end)
{
    const uint64_t now = ring_committed(ring), newest = now > end ? now : end;
    const uint64_t whole = ring.size - RING_RECORD_MAX;

    return newest > whole ? newest - whole : 0;
}

/* Copies the piece before back->at. Returns false if all bytes of the piece may have been
 * overwritten. */
static bool back_copy(const struct ring_back *back, struct ring_back_copy *copy, uint64_t until)
{
    const uint64_t start = back->at - until > BACK_PIECE ? back->at - BACK_PIECE : until;

    copy->oldest = back_intact_from(back->ring, back->end);
    copy->from = start > copy->oldest ? start : copy->oldest;
    if (copy->from >= back->at)
        return false;
    ring_copy(back->ring, copy->from, back->at, copy->bytes);
    copy->oldest = back_intact_from(back->ring, back->end);
    return true;
}

/* Reads the record that ends at back->at. *size: bytes of the record with its trailer. */
static enum back_step back_step(const struct ring_back *back, const struct ring_back_copy *copy,
                                struct ring_entry *entry, uint64_t *size)
{
    const uint64_t first = copy->from > copy->oldest ? copy->from : copy->oldest;
    uint64_t trailer;

    if (back->at < first + RING_TRAILER_SIZE)
        return BACK_PIECE_ENDS;
    memcpy(&trailer, copy->bytes + (back->at - RING_TRAILER_SIZE - copy->from), sizeof(trailer));
    *size = ring_size_by(trailer, back->at - RING_TRAILER_SIZE);
    if (!*size)
        return BACK_DAMAGED;
    if (*size > back->at - first)
        return BACK_PIECE_ENDS;
    *entry = ring_entry_of(copy->bytes + (back->at - *size - copy->from), trailer);
    return BACK_RECORD;
}

/* Gives all records of a piece. */
static void back_give_piece(struct ring_back *back, struct ring_back_copy *copy, ring_back_fn *give,
                            void *context)
{
    const uint64_t begun_at = back->at;
    struct ring_entry entry = {.payload = NULL}, last = entry;
    enum back_step step;
    uint64_t size;

    while (!back->is_ended && (step = back_step(back, copy, &entry, &size)) != BACK_PIECE_ENDS) {
        back->is_damaged = back->is_ended = step == BACK_DAMAGED;
        if (back->is_damaged)
            break;
        back->at -= size;
        back->bytes += size;
        if (entry.event == RING_PAD)
            continue;
        back->records++;
        last = entry;
        back->is_ended = !give(context, &entry, back->at);
    }
    if (last.payload) {
        memcpy(copy->last_payload, last.payload, last.length);
        copy->last = last;
        copy->last.payload = copy->last_payload;
    }
    back->is_ended |= back->at == begun_at;
}

struct ring_back ring_back_begin(struct ring ring, uint64_t end)
{
    return (struct ring_back){.ring = ring, .end = end, .at = end};
}

uint64_t ring_back_oldest(const struct ring_back *back)
{
    return back_intact_from(back->ring, back->end);
}

void ring_walk_piece(struct ring_back *back, struct ring_back_copy *copy, uint64_t until,
                     ring_back_fn *give, void *context)
{
    copy->last.payload = NULL;
    if (back_copy(back, copy, until))
        back_give_piece(back, copy, give, context);
    else
        back->is_ended = true;
}

/* ---- the oldest record ----------------------------------------------------------------------- */

bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry)
{
    const uint64_t end = ring_committed(ring), from = back_intact_from(ring, end);
    const uint64_t length = end - from < RING_OLDEST_BYTES ? end - from : RING_OLDEST_BYTES;
    uint64_t begin = 0, trailer, size;

    if (!from || end <= from)
        return false;
    ring_copy(ring, from, from + length, copy);
    /* a record is found between two trailers, if the second has the distance between them as its
     * size */
    for (uint64_t at = 0; at + RING_TRAILER_SIZE <= length; at += 8) {
        memcpy(&trailer, copy + at, sizeof(trailer));
        size = ring_size_by(trailer, from + at);
        if (from + at < back_intact_from(ring, end) || !size)
            continue;
        if (begin && ring_event_of(trailer) != RING_PAD && size == at + RING_TRAILER_SIZE - begin) {
            *entry = ring_entry_of(copy + begin, trailer);
            return from + begin >= back_intact_from(ring, end);
        }
        begin = at + RING_TRAILER_SIZE;
    }
    return false;
}
