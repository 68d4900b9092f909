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
#include <string.h>

#define SAID_AGAIN_MS 60000
#define FREE_PERMILLE 50 /* of the file system */
#define FULL_BYTES    (UINT64_C(256) << 10)
#define FREE_ENOUGH   (UINT64_C(1) << 30)

/*
 * A consumer daemon that finds no room gives streams up for good: it must never come to that. What
 * was dropped will be free soon: without it, all chunks would be dropped before the first is
 * deleted.
 */
static bool is_nearly_full(const struct room *room)
{
    uint64_t bytes, all;

    if (!store_free(room->store, &bytes, &all))
        return false;
    bytes += room->leaving.bytes;
    return (bytes < all / 1000 * FREE_PERMILLE && bytes < FREE_ENOUGH) ||
           bytes < 4 * room->largest_chunk;
}

static bool is_too_much(const struct room *room, uint64_t max_bytes)
{
    return (max_bytes && room->store->bytes > max_bytes) || is_nearly_full(room);
}

/* The oldest that is not under way: what the sink has begun it must end. */
static const struct chunk *droppable(const struct room *room)
{
    for (size_t i = 0; i < room->store->count; i++) {
        const struct chunk *chunk = &room->store->chunks[i];
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
        "deleted unread and their spans are lost: %" PRIu64 " chunks, %" PRIu64 " bytes so far",
        room->totals->chunks_dropped, room->totals->bytes_dropped);
}

bool room_is_back(struct room *room)
{
    uint64_t bytes, all;

    if (!store_free(room->store, &bytes, &all))
        return false;
    if (bytes < FULL_BYTES)
        room->was_full = true;
    if (!room->was_full || bytes <= 2 * FULL_BYTES)
        return false;
    room->was_full = false;
    return true;
}

static void room_forget(struct store *store, const struct chunk *chunk)
{
    const size_t at = (size_t)(chunk - store->chunks);

    store->bytes -= chunk->bytes;
    store->count--;
    memmove(&store->chunks[at], &store->chunks[at + 1], (store->count - at) * sizeof(*chunk));
}

bool room_make(struct room *room, uint64_t max_bytes)
{
    const struct chunk *chunk;
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
        saver_leave(&room->leaving, chunk->bytes);
        has_dropped = true;
        room_forget(room->store, chunk);
    }
    if (has_dropped) {
        room->dropped_ns = wall_clock_ns();
        say_dropped(room);
    }
    return has_dropped;
}
