/*
 * Copies and reads records.
 *
 * A copy is checked from its newest record to its oldest, because only trailers show the sizes of
 * records. Records are given from the oldest to the newest. So the check replaces the position in
 * each trailer by the size of the next record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_read.h"

#include <stdlib.h>
#include <string.h>

#define RING_POSITION_SHIFT 24 /* of the position in a trailer */
#define RING_ROOM_MIN       ((size_t)1 << 16)

void ring_reader_open(struct ring_reader *reader, struct ring ring, uint64_t from)
{
    *reader = (struct ring_reader){.ring = ring, .at = from};
}

void ring_reader_close(struct ring_reader *reader)
{
    free(reader->copy);
    *reader = (struct ring_reader){.at = 0};
}

uint64_t ring_committed(struct ring ring)
{
    return __atomic_load_n(ring.committed, __ATOMIC_ACQUIRE) & ~UINT64_C(7);
}

static bool ring_reserve(struct ring_reader *reader, size_t bytes)
{
    size_t room = reader->room ? reader->room : RING_ROOM_MIN;
    char *copy;

    if (bytes <= reader->room)
        return true;
    while (room < bytes)
        room *= 2;
    copy = malloc(room);
    if (!copy)
        return false;
    free(reader->copy);
    reader->copy = copy;
    reader->room = room;
    return true;
}

void ring_copy(struct ring ring, uint64_t from, uint64_t end, char *copy)
{
    const uint64_t at = from & (ring.size - 1), length = end - from;
    const uint64_t before_end = ring.size - at < length ? ring.size - at : length;

    memcpy(copy, ring.bytes + at, before_end);
    memcpy(copy + before_end, ring.bytes, length - before_end);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* ---- checking a copy ------------------------------------------------------------------------- */

struct ring_walk {
    char *copy;
    uint64_t from; /* the position of the copy's first byte */
    uint64_t at;   /* between two records */
    size_t next_size;
};

static uint64_t ring_load(const char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* Steps one record back, but not before `oldest`. *is_record: a record ends at walk->at, also if
 * the record begins before `oldest`. */
static bool ring_step_back(struct ring_walk *walk, uint64_t oldest, bool *is_record)
{
    char *trailer_at;
    uint64_t trailer, size;

    *is_record = false;
    if (walk->at < oldest + RING_TRAILER_SIZE)
        return false;
    trailer_at = walk->copy + (walk->at - RING_TRAILER_SIZE - walk->from);
    trailer = ring_load(trailer_at);
    size = ring_size_by(trailer, walk->at - RING_TRAILER_SIZE);
    *is_record = size != 0;
    if (!size || size > walk->at - oldest)
        return false;
    trailer = (trailer & ((UINT64_C(1) << RING_POSITION_SHIFT) - 1)) | (uint64_t)walk->next_size
                                                                           << RING_POSITION_SHIFT;
    memcpy(trailer_at, &trailer, sizeof(trailer));
    walk->next_size = size;
    walk->at -= size;
    return true;
}

/*
 * Finds the first whole record in the copy of [from, end), in which bytes before `oldest` may be
 * torn. Counts the bytes before that record. Bytes before `oldest` were overwritten. So were the
 * other bytes if they end a record that begins before `oldest`; else a program has damaged them.
 */
static void ring_check(struct ring_reader *reader, uint64_t from, uint64_t oldest, uint64_t end)
{
    struct ring_walk walk = {.copy = reader->copy, .from = from, .at = end};
    struct ring_counts *counts = &reader->counts;
    const bool is_cut = oldest > reader->at;
    uint64_t lost;
    bool is_record = false;

    while (ring_step_back(&walk, oldest, &is_record))
        ;
    lost = walk.at - reader->at;
    if (walk.at == reader->at || (is_cut && (is_record || walk.at == oldest))) {
        counts->overwritten += lost;
    } else {
        counts->overwritten += oldest - reader->at;
        counts->damaged += walk.at - oldest;
    }
    reader->at = walk.at;
    reader->next = (size_t)(walk.at - from);
    reader->next_size = walk.next_size;
}

/* Counts an impossible committed position, which a program has overwritten, and continues there. */
static void ring_jump(struct ring_reader *reader, uint64_t end)
{
    reader->counts.jumps++;
    reader->at = end;
}

bool ring_read(struct ring_reader *reader)
{
    const uint64_t whole = reader->ring.size - RING_RECORD_MAX;
    const uint64_t end = ring_committed(reader->ring);
    uint64_t from = reader->at, after, oldest;

    reader->next_size = 0;
    if (end < reader->at) {
        ring_jump(reader, end);
        return true;
    }
    if (end - from > whole)
        from = end - whole;
    if (end == from)
        return true;
    if (!ring_reserve(reader, (size_t)(end - from)))
        return false;
    ring_copy(reader->ring, from, end, reader->copy);
    after = ring_committed(reader->ring);
    if (after < end) {
        ring_jump(reader, after);
        return true;
    }
    oldest = after - from > whole ? after - whole : from;
    if (oldest > end)
        oldest = end;
    ring_check(reader, from, oldest, end);
    return true;
}

/* ---- reading a copy -------------------------------------------------------------------------- */

static uint64_t ring_trailer_here(const struct ring_reader *reader)
{
    return ring_load(reader->copy + reader->next + reader->next_size - RING_TRAILER_SIZE);
}

static void ring_advance(struct ring_reader *reader, uint64_t trailer)
{
    reader->counts.read += reader->next_size;
    reader->at += reader->next_size;
    reader->next += reader->next_size;
    reader->next_size = (size_t)(trailer >> RING_POSITION_SHIFT);
}

struct ring_entry ring_entry_of(const char *begin, uint64_t trailer)
{
    struct ring_record record = {.pid = 0};
    size_t length = ring_length_of(trailer);

    if (length >= sizeof(record))
        memcpy(&record, begin, sizeof(record));
    else
        length = sizeof(record); /* no payload */
    return (struct ring_entry){.event = ring_event_of(trailer),
                               .pid = record.pid,
                               .pid_namespace = record.pid_namespace,
                               .payload = begin + sizeof(record),
                               .length = length - sizeof(record)};
}

bool ring_peek(struct ring_reader *reader, struct ring_entry *entry)
{
    uint64_t trailer;

    for (;; ring_advance(reader, trailer)) {
        if (!reader->next_size)
            return false;
        trailer = ring_trailer_here(reader);
        if (ring_event_of(trailer) != RING_PAD)
            break;
    }
    *entry = ring_entry_of(reader->copy + reader->next, trailer);
    return true;
}

void ring_pass(struct ring_reader *reader)
{
    reader->counts.records++;
    ring_advance(reader, ring_trailer_here(reader));
}
