/*
 * Room on the disk.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "room.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAID_AGAIN_MS 60000
#define FREE_PERMILLE 50 /* of the file system */
#define FULL_BYTES    (UINT64_C(256) << 10)
#define FREE_ENOUGH   (UINT64_C(1) << 30)

/* A consumer daemon that finds no room gives streams up for good: it must never come to that. */
static bool is_nearly_full(const struct room *room, uint64_t bytes, unsigned permille)
{
    return (permille < FREE_PERMILLE && bytes < FREE_ENOUGH) || bytes < 4 * room->largest_chunk;
}

static bool is_too_much(const struct room *room, uint64_t max_bytes)
{
    unsigned permille;
    uint64_t bytes;

    return (max_bytes && room->store->bytes > max_bytes) ||
           (store_free(room->store, &permille, &bytes) && is_nearly_full(room, bytes, permille));
}

/* The oldest that is not under way: what the sink has begun it must end. */
static struct chunk *droppable(const struct room *room)
{
    for (size_t i = 0; i < room->store->count; i++) {
        struct chunk *chunk = &room->store->chunks[i];
        char name[PLACE_MAX + CHUNK_MAX];

        (void)snprintf(name, sizeof(name), "%s/%s", chunk->place, chunk->name);
        if (strcmp(room->totals->current, name) != 0 && chunk->bytes &&
            (strcmp(room->at_hand->name, chunk->name) != 0 ||
             strcmp(room->at_hand->place, chunk->place) != 0))
            return chunk;
    }
    return NULL;
}

static void say_dropped(struct room *room)
{
    if (room->said_ms && clock_ms() - room->said_ms < SAID_AGAIN_MS)
        return;
    room->said_ms = clock_ms();
    say(BK3030,
        "no room on the disk (max-disk-bytes, or the file system is full): the oldest chunks are "
        "deleted unread, %" PRIu64 " so far, %" PRIu64 " bytes: their spans are lost",
        room->totals->chunks_dropped, room->totals->bytes_dropped);
}

bool room_is_back(struct room *room)
{
    unsigned permille;
    uint64_t bytes;

    if (!store_free(room->store, &permille, &bytes))
        return false;
    if (bytes < FULL_BYTES)
        room->was_full = true;
    if (!room->was_full || bytes <= 2 * FULL_BYTES)
        return false;
    room->was_full = false;
    return true;
}

bool room_make(struct room *room, uint64_t max_bytes)
{
    struct chunk *chunk;
    bool has_dropped = false;

    for (size_t i = 0; i < room->store->count; i++) {
        if (room->store->chunks[i].bytes > room->largest_chunk)
            room->largest_chunk = room->store->chunks[i].bytes;
    }
    while (is_too_much(room, max_bytes) && (chunk = droppable(room)) != NULL) {
        if (!store_remove(room->store, chunk)) {
            say(BK3031, "cannot delete chunks to make room: %s", strerror(errno));
            break;
        }
        room->totals->chunks_dropped++;
        room->totals->bytes_dropped += chunk->bytes;
        room->store->bytes -= chunk->bytes;
        *chunk = room->store->chunks[--room->store->count];
        has_dropped = true;
        qsort(room->store->chunks, room->store->count, sizeof(*chunk), store_by_age);
    }
    if (has_dropped) {
        room->dropped_ns = wall_clock_ns();
        say_dropped(room);
    }
    return has_dropped;
}
