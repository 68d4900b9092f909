/* SPDX-License-Identifier: BSD-2-Clause */
#include "follow.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdlib.h>

struct follow_ring {
    struct ring_reader reader;
    struct event event; /* the event at the reader's position */
};

struct followed {
    const struct memory *memory;
    struct followed *next;
    uint32_t count;
    struct follow_ring rings[];
};

struct follow {
    struct follow_calls calls;
    int64_t grace_ns, offset_ns;
    int64_t done_ns;     /* CLOCK_MONOTONIC: all events up to this time were given */
    int64_t copied_ns;   /* the time of the last copy */
    int64_t interval_ns; /* the time between the last two copies */
    uint64_t fill;       /* unread part of the fullest ring at the last copy, in 1/1024 */
    struct followed *memories;
    struct follow_ring **heap; /* rings with a due event; a binary heap, the earliest first */
    uint32_t heap_count;
    uint32_t rings;              /* of all memories: the room of the heap */
    struct follow_counts counts; /* counts.rings: only of dropped memories */
};

/* ---- the heap -------------------------------------------------------------------------------- */

static bool follow_is_before(const struct follow_ring *a, const struct follow_ring *b)
{
    return a->event.time_ns < b->event.time_ns;
}

static void follow_push(struct follow *follow, struct follow_ring *ring)
{
    uint32_t at = follow->heap_count++;

    for (; at && follow_is_before(ring, follow->heap[(at - 1) / 2]); at = (at - 1) / 2)
        follow->heap[at] = follow->heap[(at - 1) / 2];
    follow->heap[at] = ring;
}

/* Replaces the heap's first ring by `ring`, and restores the heap's order. */
static void follow_sift_down(struct follow *follow, struct follow_ring *ring)
{
    const uint32_t count = follow->heap_count;
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && follow_is_before(follow->heap[child + 1], follow->heap[child]))
            child++;
        if (!follow_is_before(follow->heap[child], ring))
            break;
        follow->heap[at] = follow->heap[child];
    }
    if (count)
        follow->heap[at] = ring;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static void follow_count_skipped(struct follow *follow, enum decoded why)
{
    switch (why) {
    case DECODED_NEWER:
        follow->counts.newer++;
        break;
    case DECODED_FOREIGN:
    case DECODED_ALARM: /* alarms have rings of their own */
        follow->counts.foreign++;
        break;
    default:
        follow->counts.unreadable++;
        break;
    }
}

/* Decodes the ring's next event. Returns false if no event is due. */
static bool follow_next(struct follow *follow, struct follow_ring *ring,
                        const struct ring_clock *clock, int64_t until_ns)
{
    struct ring_entry entry;
    enum decoded decoded;

    for (; ring_peek(&ring->reader, &entry); ring_pass(&ring->reader)) {
        decoded = ring_event(&entry, clock, &ring->event);
        if (decoded == DECODED)
            return ring->event.time_ns <= until_ns;
        follow_count_skipped(follow, decoded);
    }
    return false;
}

static void follow_copy(struct follow *follow, struct follow_ring *ring, int64_t now_ns)
{
    const struct ring_reader *reader = &ring->reader;
    const uint64_t before = reader->counts.overwritten, end = ring_committed(reader->ring);
    const uint64_t fill = end > reader->at ? (end - reader->at) / (reader->ring.size / 1024) : 0;

    if (fill > follow->fill)
        follow->fill = fill;
    (void)ring_read(&ring->reader); /* out of memory: the next look tries again */
    if (ring->reader.counts.overwritten != before)
        follow->calls.lost(follow->calls.context, follow->done_ns + follow->offset_ns,
                           now_ns + follow->offset_ns);
}

/* Copies all rings, then gives the events that are older than the grace period. */
static int64_t follow_until(struct follow *follow, int64_t grace_ns)
{
    const int64_t before_ns = clock_ns(), done_ns = before_ns - grace_ns;
    const int64_t until_ns = done_ns + follow->offset_ns;
    struct ring_clock clock = {follow->done_ns, 0, follow->offset_ns};

    follow->interval_ns = before_ns - follow->copied_ns;
    follow->copied_ns = before_ns;
    follow->fill = 0;
    for (struct followed *memory = follow->memories; memory; memory = memory->next)
        for (uint32_t i = 0; i < memory->count; i++)
            follow_copy(follow, &memory->rings[i], before_ns);
    clock.now_ns = clock_ns();
    follow->heap_count = 0;
    for (struct followed *memory = follow->memories; memory; memory = memory->next)
        for (uint32_t i = 0; i < memory->count; i++)
            if (follow_next(follow, &memory->rings[i], &clock, until_ns))
                follow_push(follow, &memory->rings[i]);
    while (follow->heap_count) {
        struct follow_ring *ring = follow->heap[0];

        follow->calls.event(follow->calls.context, &ring->event);
        ring_pass(&ring->reader);
        if (!follow_next(follow, ring, &clock, until_ns))
            ring = follow->heap[--follow->heap_count];
        follow_sift_down(follow, ring);
    }
    if (done_ns > follow->done_ns)
        follow->done_ns = done_ns;
    return follow->done_ns + follow->offset_ns;
}

int64_t follow_look(struct follow *follow)
{
    return follow_until(follow, follow->grace_ns);
}

int64_t follow_next_ms(const struct follow *follow, int64_t poll_ms)
{
    const uint64_t quarter = 1024 / 4;
    int64_t next_ms;

    if (follow->fill == 0)
        return poll_ms;
    if (follow->fill >= 4 * quarter)
        return 0;
    next_ms = follow->interval_ns * (int64_t)quarter / (int64_t)follow->fill / 1000000;
    return next_ms < poll_ms ? next_ms : poll_ms;
}

int64_t follow_look_at_all(struct follow *follow)
{
    return follow_until(follow, 0);
}

/* ---- memories -------------------------------------------------------------------------------- */

struct follow *follow_new(const struct follow_calls *calls, int64_t from_ns, int64_t grace_ns,
                          int64_t offset_ns)
{
    struct follow *follow = calloc(1, sizeof(*follow));

    if (!follow)
        return NULL;
    follow->calls = *calls;
    follow->grace_ns = grace_ns;
    follow->offset_ns = offset_ns;
    follow->copied_ns = clock_ns();
    follow->done_ns = from_ns - grace_ns;
    return follow;
}

bool follow_add(struct follow *follow, const struct memory *memory, bool from_now)
{
    const uint32_t count = memory->size.cpus;
    struct follow_ring **heap =
        reallocarray(follow->heap, follow->rings + count, sizeof(struct follow_ring *));
    struct followed *followed = calloc(1, sizeof(*followed) + count * sizeof(struct follow_ring));

    if (heap)
        follow->heap = heap;
    if (!heap || !followed) {
        free(followed);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ring ring = memory_ring(memory, i);

        ring_reader_open(&followed->rings[i].reader, ring, from_now ? ring_committed(ring) : 0);
    }
    followed->memory = memory;
    followed->count = count;
    followed->next = follow->memories;
    follow->memories = followed;
    follow->rings += count;
    return true;
}

static struct followed *follow_find(const struct follow *follow, const struct memory *memory)
{
    struct followed *followed = follow->memories;

    while (followed && followed->memory != memory)
        followed = followed->next;
    return followed;
}

void follow_begin_at(struct follow *follow, const struct memory *memory, uint32_t cpu, uint64_t at)
{
    struct followed *followed = follow_find(follow, memory);

    if (followed && cpu < followed->count)
        followed->rings[cpu].reader.at = at;
}

uint64_t follow_position(const struct follow *follow, const struct memory *memory, uint32_t cpu)
{
    const struct followed *followed = follow_find(follow, memory);

    return followed && cpu < followed->count ? followed->rings[cpu].reader.at : 0;
}

int64_t follow_done_ns(const struct follow *follow)
{
    return follow->done_ns;
}

static void follow_sum(struct ring_counts *sum, const struct followed *memory)
{
    for (uint32_t i = 0; i < memory->count; i++) {
        const struct ring_counts *counts = &memory->rings[i].reader.counts;

        sum->records += counts->records;
        sum->read += counts->read;
        sum->overwritten += counts->overwritten;
        sum->damaged += counts->damaged;
        sum->jumps += counts->jumps;
    }
}

static void follow_remove(struct follow *follow, struct followed **at)
{
    struct followed *memory = *at;

    *at = memory->next;
    follow_sum(&follow->counts.rings, memory);
    follow->rings -= memory->count;
    for (uint32_t i = 0; i < memory->count; i++)
        ring_reader_close(&memory->rings[i].reader);
    free(memory);
}

void follow_drop(struct follow *follow, const struct memory *memory)
{
    struct followed **at = &follow->memories;

    (void)follow_look_at_all(follow);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (*at)
        follow_remove(follow, at);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    while (follow->memories)
        follow_remove(follow, &follow->memories);
    free(follow->heap);
    free(follow);
}

struct follow_counts follow_counts(const struct follow *follow)
{
    struct follow_counts counts = follow->counts;

    for (const struct followed *memory = follow->memories; memory; memory = memory->next)
        follow_sum(&counts.rings, memory);
    return counts;
}
