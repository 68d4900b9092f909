/*
 * A table of streams, and a cache in front: the event class alone finds the decoding of an event. A
 * class belongs to one trace, and one decoder's plan for a class is right for all streams.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "streams.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>
#include <urcu/compiler.h>

struct known_class {
    struct table_link in_table;
    const bt_stream *stream;
    struct stream_decoder *decoder;
};

static void streams_free_linked(struct table_link *link)
{
    struct known_class *known = caa_container_of(link, struct known_class, in_table);

    stream_decoder_free(known->decoder);
    free(known);
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

static struct known_class *streams_find(const struct streams *streams, const bt_stream *stream)
{
    const uint64_t hash = hash_number(streams->table.seed, (uintptr_t)stream);
    struct known_class *known;

    table_find(known, &streams->table, hash, in_table, known->stream == stream);
    return known;
}

static struct known_class *streams_add(struct streams *streams, const bt_stream *stream)
{
    struct known_class *known = malloc(sizeof(*known));

    if (!known)
        return NULL;
    *known = (struct known_class){.stream = stream,
                                  .decoder = stream_decoder_new(stream, streams->rules)};
    if (!known->decoder) {
        free(known);
        return NULL;
    }
    table_add(&streams->table, &known->in_table,
              hash_number(streams->table.seed, (uintptr_t)stream));
    return known;
}

struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream)
{
    struct known_class *known = streams_find(streams, stream);

    if (!known)
        known = streams_add(streams, stream);
    return known ? known->decoder : NULL;
}

const struct decode_plan *streams_find_plan(struct streams *streams, struct recent_class *recent,
                                            const bt_event *event)
{
    const bt_event_class *class = bt_event_borrow_class_const(event);
    struct stream_decoder *decoder = streams_decoder(streams, bt_event_borrow_stream_const(event));
    const struct decode_plan *plan = decoder ? stream_decoder_plan(decoder, class) : NULL;

    if (plan)
        *recent = (struct recent_class){class, plan};
    return plan;
}

void streams_end(struct streams *streams, const bt_stream *stream)
{
    struct known_class *known = streams_find(streams, stream);

    if (!known)
        return;
    memset(streams->recent, 0, sizeof(streams->recent)); /* some slots belong to this decoder */
    table_remove(&streams->table, &known->in_table);
    streams_free_linked(&known->in_table);
}
