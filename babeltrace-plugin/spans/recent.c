/*
 * Direct-mapped tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "recent.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

void recent_destroy(struct recent *recent)
{
    free(recent->shared);
}

static uint64_t recent_hash(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id));
}

/* The kind is part of the hash: client and server halves of a span may have the same ids. */
static uint64_t hash_of_streamed(const struct span *span, const struct event_source *source)
{
    return hash_mix(recent_hash(span) ^ source->host_hash ^ span->kind);
}

void recent_note_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);

    recent->streamed[hash & (RECENT_SLOTS - 1)] = hash;
}

bool recent_take_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);
    uint64_t *slot = &recent->streamed[hash & (RECENT_SLOTS - 1)];

    if (*slot != hash)
        return false;
    *slot = 0;
    return true;
}

void recent_note_client(struct recent *recent, const struct span *span)
{
    const uint64_t hash = recent_hash(span);

    recent->clients[hash & (RECENT_SLOTS - 1)] = (struct recent_client){hash, span->endpoint};
    recent->has_clients = true;
}

bool recent_has_client(const struct recent *recent, const struct span *span)
{
    const struct recent_client *slot;
    uint64_t hash;

    if (!recent->has_clients)
        return false;
    hash = recent_hash(span);
    slot = &recent->clients[hash & (RECENT_SLOTS - 1)];
    return slot->hash == hash && slot->endpoint && slot->endpoint != span->endpoint;
}

static uint64_t hash_of_shared(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id ^ span->endpoint->hash));
}

void recent_note_shared(struct recent *recent, const struct span *span)
{
    const uint64_t hash = hash_of_shared(span);

    if (!recent->shared)
        recent->shared = calloc(RECENT_SHARED_SLOTS, sizeof(*recent->shared));
    if (recent->shared)
        recent->shared[hash & (RECENT_SHARED_SLOTS - 1)] = (uint32_t)(hash >> 32);
}

bool recent_has_shared(const struct recent *recent, const struct span *span)
{
    uint64_t hash;

    if (!recent->shared)
        return false;
    hash = hash_of_shared(span);
    return hash >> 32 && recent->shared[hash & (RECENT_SHARED_SLOTS - 1)] == (uint32_t)(hash >> 32);
}
