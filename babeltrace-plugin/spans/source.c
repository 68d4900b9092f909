/*
 * The table of sources.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "source.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>
#include <urcu/compiler.h>

#define RECENT 16 /* a power of two */

struct source_table {
    struct table sources;
    struct event_source *recent[RECENT]; /* by the address of the host's name: a trace has one */
    struct event_source overflow;
};

static bool is_source_of(const struct event_source *source, const struct origin *origin)
{
    return source->clock == origin->clock && text_equal(source->host, origin->host);
}

static void free_source(struct table_link *link)
{
    struct event_source *source = caa_container_of(link, struct event_source, in_table);

    losses_destroy(&source->losses);
    losses_destroy(&source->gaps);
    free(source);
}

static void init_source(struct event_source *source)
{
    losses_init(&source->losses);
    losses_init(&source->gaps);
}

struct source_table *source_table_new(void)
{
    struct source_table *table = calloc(1, sizeof(*table));

    if (!table || !table_init(&table->sources)) {
        free(table);
        return NULL;
    }
    init_source(&table->overflow);
    table->overflow.is_overflow = true;
    return table;
}

void source_table_free(struct source_table *table)
{
    if (!table)
        return;
    table_destroy(&table->sources, free_source);
    free(table);
}

static struct event_source *source_new(const struct origin *origin)
{
    struct event_source *source = calloc(1, sizeof(*source) + origin->host.length);

    if (!source)
        return NULL;
    init_source(source);
    source->host = (struct text){(char *)(source + 1), origin->host.length};
    (void)text_copy((char *)(source + 1), origin->host);
    source->clock = origin->clock;
    source->host_hash = hash_text(0, source->host);
    return source;
}

struct event_source *source_get(struct source_table *table, const struct origin *origin)
{
    const uintptr_t address = (uintptr_t)origin->host.data;
    struct event_source **recent = &table->recent[(address >> 4 ^ address >> 12) & (RECENT - 1)];
    struct event_source *source;
    uint64_t hash;

    if (*recent && is_source_of(*recent, origin))
        return *recent;
    hash = hash_text(table->sources.seed ^ hash_mix((uint64_t)origin->clock), origin->host);
    table_find(source, &table->sources, hash, in_table, is_source_of(source, origin));
    if (!source) {
        source = table->sources.count < SOURCES_MAX ? source_new(origin) : NULL;
        if (!source)
            return &table->overflow;
        table_add(&table->sources, &source->in_table, hash);
    }
    *recent = source;
    return source;
}
