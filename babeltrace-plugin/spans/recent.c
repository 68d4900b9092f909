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

/* The kind is mixed in: client and server halves of a span may have the same ids. */
static uint64_t hash_of_streamed(const struct span *span, const struct source *source)
{
    return hash_mix(recent_hash(span) ^ source->host_hash ^ span->kind);
}

void recent_note_streamed(struct recent *recent, const struct span *span,
                          const struct source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);

    recent->streamed[hash & (RECENT_PLACES - 1)] = hash;
}

bool recent_take_streamed(struct recent *recent, const struct span *span,
                          const struct source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);
    uint64_t *place = &recent->streamed[hash & (RECENT_PLACES - 1)];

    if (*place != hash)
        return false;
    *place = 0;
    return true;
}

void recent_note_client(struct recent *recent, const struct span *span)
{
    const uint64_t hash = recent_hash(span);

    recent->clients[hash & (RECENT_PLACES - 1)] = (struct recent_client){hash, span->endpoint};
    recent->has_clients = true;
}

bool recent_has_client(const struct recent *recent, const struct span *span)
{
    const struct recent_client *place;
    uint64_t hash;

    if (!recent->has_clients)
        return false;
    hash = recent_hash(span);
    place = &recent->clients[hash & (RECENT_PLACES - 1)];
    return place->hash == hash && place->endpoint && place->endpoint != span->endpoint;
}

static uint64_t hash_of_shared(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id ^ span->endpoint->hash));
}

void recent_note_shared(struct recent *recent, const struct span *span)
{
    const uint64_t hash = hash_of_shared(span);

    if (!recent->shared)
        recent->shared = calloc(RECENT_SHARED_PLACES, sizeof(*recent->shared));
    if (recent->shared)
        recent->shared[hash & (RECENT_SHARED_PLACES - 1)] = (uint32_t)(hash >> 32);
}

bool recent_has_shared(const struct recent *recent, const struct span *span)
{
    uint64_t hash;

    if (!recent->shared)
        return false;
    hash = hash_of_shared(span);
    return hash >> 32 &&
           recent->shared[hash & (RECENT_SHARED_PLACES - 1)] == (uint32_t)(hash >> 32);
}

/* ---- from one run to the next ---------------------------------------------------------------- */

/* Each of the three ends with 0, which stands for a place that is free. */
void recent_save(struct recent *recent, struct endpoint_table *endpoints, struct state *state)
{
    for (size_t i = 0; i < RECENT_PLACES; i++) {
        if (recent->streamed[i])
            state_put_number(state, recent->streamed[i]);
    }
    state_put_number(state, 0);
    for (size_t i = 0; i < RECENT_PLACES; i++) {
        if (!recent->clients[i].hash)
            continue;
        state_put_number(state, recent->clients[i].hash);
        endpoint_state(endpoints, &recent->clients[i].endpoint, state);
    }
    state_put_number(state, 0);
    for (uint64_t i = 0; recent->shared && i < RECENT_SHARED_PLACES; i++) {
        if (recent->shared[i])
            state_put_number(state, (uint64_t)recent->shared[i] << 32 | i);
    }
    state_put_number(state, 0);
}

void recent_restore(struct recent *recent, struct endpoint_table *endpoints, struct state *state)
{
    uint64_t hash;

    while ((hash = state_get_number(state)))
        recent->streamed[hash & (RECENT_PLACES - 1)] = hash;
    while ((hash = state_get_number(state))) {
        struct recent_client *place = &recent->clients[hash & (RECENT_PLACES - 1)];

        place->hash = hash;
        endpoint_state(endpoints, &place->endpoint, state);
        recent->has_clients = true;
    }
    while ((hash = state_get_number(state))) {
        if (!recent->shared)
            recent->shared = calloc(RECENT_SHARED_PLACES, sizeof(*recent->shared));
        if (!recent->shared)
            state_set_no_memory(state);
        else
            recent->shared[hash & (RECENT_SHARED_PLACES - 1)] = (uint32_t)(hash >> 32);
    }
}
