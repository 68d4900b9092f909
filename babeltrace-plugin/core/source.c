/*
 * The table of sources.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "source.h"

#include "hash.h"

#include <glib.h>
#include <stdlib.h>

#define RECENT 16 /* a power of two */

struct source_table {
    GHashTable *sources;
    struct source *recent[RECENT]; /* by the address of the host's name: a trace has one */
    struct source overflow;
};

static guint hash_source(gconstpointer data)
{
    const struct source *source = data;

    return (guint)hash_text((uint64_t)source->clock, source->host);
}

static gboolean equal_sources(gconstpointer left, gconstpointer right)
{
    const struct source *a = left;
    const struct source *b = right;

    return a->clock == b->clock && text_equal(a->host, b->host);
}

static void free_source(gpointer data)
{
    struct source *source = data;

    losses_destroy(&source->losses);
    losses_destroy(&source->gaps);
    free(source);
}

static void init_source(struct source *source)
{
    losses_init(&source->losses);
    losses_init(&source->gaps);
}

struct source_table *source_table_new(void)
{
    struct source_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    init_source(&table->overflow);
    table->overflow.is_overflow = true;
    table->sources = g_hash_table_new_full(hash_source, equal_sources, free_source, NULL);
    return table;
}

void source_table_free(struct source_table *table)
{
    if (!table)
        return;
    g_hash_table_destroy(table->sources);
    free(table);
}

static struct source *source_new(const struct source *key)
{
    struct source *source = calloc(1, sizeof(*source) + key->host.length);

    if (!source)
        return NULL;
    init_source(source);
    source->host = (struct text){(char *)(source + 1), key->host.length};
    if (key->host.length)
        memcpy(source + 1, key->host.data, key->host.length);
    source->clock = key->clock;
    source->host_hash = hash_text(0, source->host);
    return source;
}

struct source *source_get(struct source_table *table, const struct origin *origin)
{
    const struct source key = {.host = origin->host, .clock = origin->clock};
    const uintptr_t address = (uintptr_t)origin->host.data;
    struct source **recent = &table->recent[(address >> 4 ^ address >> 12) & (RECENT - 1)];
    struct source *source;

    if (*recent && equal_sources(*recent, &key))
        return *recent;
    source = g_hash_table_lookup(table->sources, &key);
    if (!source) {
        if (g_hash_table_size(table->sources) >= SOURCES_MAX || !(source = source_new(&key)))
            return &table->overflow;
        g_hash_table_add(table->sources, source);
    }
    *recent = source;
    return source;
}
