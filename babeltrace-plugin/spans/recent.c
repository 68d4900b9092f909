/*
 * Direct-mapped tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "recent.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

struct client {
    uint64_t hash;
    const struct endpoint *endpoint;
};

struct recent_table {
    uint64_t streamed[RECENT_PLACES];
    struct client clients[RECENT_PLACES];
    bool has_clients; /* any: many a trace has servers only */
    uint32_t *shared; /* NULL: none */
};

struct recent_table *recent_table_new(void)
{
    return calloc(1, sizeof(struct recent_table));
}

void recent_table_free(struct recent_table *table)
{
    if (table)
        free(table->shared);
    free(table);
}

static uint64_t hash_of(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id));
}

/* The kind is mixed in: client and server halves of a span may have the same ids. */
static uint64_t hash_of_streamed(const struct span *span, const struct source *source)
{
    return hash_mix(hash_of(span) ^ source->host_hash ^ span->kind);
}

void recent_note_streamed(struct recent_table *table, const struct span *span,
                          const struct source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);

    table->streamed[hash & (RECENT_PLACES - 1)] = hash;
}

bool recent_take_streamed(struct recent_table *table, const struct span *span,
                          const struct source *source)
{
    const uint64_t hash = hash_of_streamed(span, source);
    uint64_t *place = &table->streamed[hash & (RECENT_PLACES - 1)];

    if (*place != hash)
        return false;
    *place = 0;
    return true;
}

void recent_note_client(struct recent_table *table, const struct span *span)
{
    const uint64_t hash = hash_of(span);

    table->clients[hash & (RECENT_PLACES - 1)] = (struct client){hash, span->endpoint};
    table->has_clients = true;
}

bool recent_has_client(const struct recent_table *table, const struct span *span)
{
    const struct client *place;
    uint64_t hash;

    if (!table->has_clients)
        return false;
    hash = hash_of(span);
    place = &table->clients[hash & (RECENT_PLACES - 1)];
    return place->hash == hash && place->endpoint && place->endpoint != span->endpoint;
}

static uint64_t hash_of_shared(const struct span *span)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id ^ span->endpoint->hash));
}

void recent_note_shared(struct recent_table *table, const struct span *span)
{
    const uint64_t hash = hash_of_shared(span);

    if (!table->shared)
        table->shared = calloc(RECENT_SHARED_PLACES, sizeof(*table->shared));
    if (table->shared)
        table->shared[hash & (RECENT_SHARED_PLACES - 1)] = (uint32_t)(hash >> 32);
}

bool recent_has_shared(const struct recent_table *table, const struct span *span)
{
    uint64_t hash;

    if (!table->shared)
        return false;
    hash = hash_of_shared(span);
    return hash >> 32 && table->shared[hash & (RECENT_SHARED_PLACES - 1)] == (uint32_t)(hash >> 32);
}

/* ---- from one run to the next ---------------------------------------------------------------- */

/* Each of the three ends with 0, which stands for a place that is free. */
void recent_save(struct recent_table *table, struct endpoint_table *endpoints, struct state *state)
{
    for (size_t i = 0; i < RECENT_PLACES; i++) {
        if (table->streamed[i])
            state_put_number(state, table->streamed[i]);
    }
    state_put_number(state, 0);
    for (size_t i = 0; i < RECENT_PLACES; i++) {
        if (!table->clients[i].hash)
            continue;
        state_put_number(state, table->clients[i].hash);
        endpoint_state(endpoints, &table->clients[i].endpoint, state);
    }
    state_put_number(state, 0);
    for (uint64_t i = 0; table->shared && i < RECENT_SHARED_PLACES; i++) {
        if (table->shared[i])
            state_put_number(state, (uint64_t)table->shared[i] << 32 | i);
    }
    state_put_number(state, 0);
}

void recent_restore(struct recent_table *table, struct endpoint_table *endpoints,
                    struct state *state)
{
    uint64_t hash;

    while ((hash = state_get_number(state)))
        table->streamed[hash & (RECENT_PLACES - 1)] = hash;
    while ((hash = state_get_number(state))) {
        struct client *place = &table->clients[hash & (RECENT_PLACES - 1)];

        place->hash = hash;
        endpoint_state(endpoints, &place->endpoint, state);
        table->has_clients = true;
    }
    while ((hash = state_get_number(state))) {
        if (!table->shared)
            table->shared = calloc(RECENT_SHARED_PLACES, sizeof(*table->shared));
        if (!table->shared)
            state_set_no_memory(state);
        else
            table->shared[hash & (RECENT_SHARED_PLACES - 1)] = (uint32_t)(hash >> 32);
    }
}
