/*
 * A direct-mapped table.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "recent.h"

#include "hash.h"

#include <stdlib.h>

struct place {
    uint64_t trace_id;
    uint64_t span_id; /* 0: free */
    const struct source *source;
    enum span_kind kind;
};

struct recent_table {
    struct place places[RECENT_PLACES];
};

struct recent_table *recent_table_new(void)
{
    return calloc(1, sizeof(struct recent_table));
}

void recent_table_free(struct recent_table *table)
{
    free(table);
}

/* The kind is mixed in: client and server halves of a span may have the same ids. */
static struct place *place_of(struct recent_table *table, const struct span *span)
{
    const uint64_t hash = hash_mix(span->trace_id ^ hash_mix(span->id + span->kind));

    return &table->places[hash & (RECENT_PLACES - 1)];
}

void recent_note(struct recent_table *table, const struct span *span, const struct source *source)
{
    *place_of(table, span) = (struct place){
        .trace_id = span->trace_id,
        .span_id = span->id,
        .source = source,
        .kind = span->kind,
    };
}

bool recent_take(struct recent_table *table, const struct span *span, const struct source *source)
{
    struct place *place = place_of(table, span);

    if (place->span_id != span->id || place->trace_id != span->trace_id ||
        place->kind != span->kind || !text_equal(place->source->host, source->host))
        return false;
    place->span_id = 0;
    return true;
}
