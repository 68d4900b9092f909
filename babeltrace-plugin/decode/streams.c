/*
 * A table of streams, and a few places before it: the streams in use are found without a search.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "streams.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>
#include <urcu/compiler.h>

#define RECENT 16 /* a power of two */

struct known {
    struct table_link in_table;
    const bt_stream *stream;
    struct stream_decoder *decoder;
};

struct streams {
    struct table table;
    struct known *recent[RECENT];
    struct rules *rules;
};

static uint64_t streams_hash(uint64_t seed, const bt_stream *stream)
{
    return hash_mix(seed ^ (uint64_t)(uintptr_t)stream);
}

static void free_known(struct known *known)
{
    stream_decoder_free(known->decoder);
    free(known);
}

static void streams_free_linked(struct table_link *link)
{
    free_known(caa_container_of(link, struct known, in_table));
}

struct streams *streams_new(struct rules *rules)
{
    struct streams *streams = calloc(1, sizeof(*streams));

    if (!streams || !table_init(&streams->table)) {
        free(streams);
        return NULL;
    }
    streams->rules = rules;
    return streams;
}

void streams_free(struct streams *streams)
{
    if (!streams)
        return;
    table_destroy(&streams->table, streams_free_linked);
    free(streams);
}

static struct known *streams_find(const struct streams *streams, const bt_stream *stream)
{
    const uint64_t hash = streams_hash(streams->table.seed, stream);
    struct known *known;

    table_find(known, &streams->table, hash, in_table, known->stream == stream);
    return known;
}

static struct known *streams_add(struct streams *streams, const bt_stream *stream)
{
    struct known *known = malloc(sizeof(*known));

    if (!known)
        return NULL;
    *known =
        (struct known){.stream = stream, .decoder = stream_decoder_new(stream, streams->rules)};
    if (!known->decoder) {
        free(known);
        return NULL;
    }
    table_add(&streams->table, &known->in_table, streams_hash(streams->table.seed, stream));
    return known;
}

static struct known **recent_place(struct streams *streams, const bt_stream *stream)
{
    return &streams->recent[((uintptr_t)stream >> 6) % RECENT];
}

struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream)
{
    struct known **recent = recent_place(streams, stream);
    struct known *known = *recent;

    if (known && known->stream == stream)
        return known->decoder;
    known = streams_find(streams, stream);
    if (!known)
        known = streams_add(streams, stream);
    if (!known)
        return NULL;
    *recent = known;
    return known->decoder;
}

void streams_end(struct streams *streams, const bt_stream *stream)
{
    struct known *known = streams_find(streams, stream);

    if (!known)
        return;
    *recent_place(streams, stream) = NULL;
    table_remove(&streams->table, &known->in_table);
    free_known(known);
}
