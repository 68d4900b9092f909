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
    const struct endpoint *endpoint;
    enum span_kind kind;
    bool streamed;
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
static size_t index_of(const struct span *span, enum span_kind kind)
{
    return hash_mix(span->trace_id ^ hash_mix(span->id + kind)) & (RECENT_PLACES - 1);
}

static bool is_of(const struct place *place, const struct span *span, enum span_kind kind)
{
    return place->span_id == span->id && place->trace_id == span->trace_id && place->kind == kind;
}

void recent_note(struct recent_table *table, const struct span *span, const struct source *source,
                 bool streamed)
{
    table->places[index_of(span, span->kind)] = (struct place){
        .trace_id = span->trace_id,
        .span_id = span->id,
        .source = source,
        .endpoint = span->endpoint,
        .kind = span->kind,
        .streamed = streamed,
    };
}

bool recent_take(struct recent_table *table, const struct span *span, const struct source *source)
{
    struct place *place = &table->places[index_of(span, span->kind)];

    if (!place->streamed || !is_of(place, span, span->kind) ||
        !text_equal(place->source->host, source->host))
        return false;
    place->streamed = false;
    return true;
}

bool recent_has_client(const struct recent_table *table, const struct span *span)
{
    const struct place *place = &table->places[index_of(span, SPAN_CLIENT)];

    return is_of(place, span, SPAN_CLIENT) && place->endpoint != span->endpoint;
}
