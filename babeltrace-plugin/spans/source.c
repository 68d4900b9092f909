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
    struct source *recent[RECENT]; /* by the address of the host's name: a trace has one */
    struct source overflow;
};

static uint64_t source_hash(uint64_t seed, struct text host, int64_t clock)
{
    return hash_text(seed ^ hash_mix((uint64_t)clock), host);
}

static bool is_source_of(const struct source *source, const struct origin *origin)
{
    return source->clock == origin->clock && text_equal(source->host, origin->host);
}

static void free_source(struct table_link *link)
{
    struct source *source = caa_container_of(link, struct source, in_table);

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

static struct source *source_new(const struct origin *origin)
{
    struct source *source = calloc(1, sizeof(*source) + origin->host.length);

    if (!source)
        return NULL;
    init_source(source);
    source->host = (struct text){(char *)(source + 1), origin->host.length};
    (void)text_copy((char *)(source + 1), origin->host);
    source->clock = origin->clock;
    source->host_hash = hash_text(0, source->host);
    return source;
}

/* Returns NULL when out of memory, or of room. */
static struct source *source_add(struct source_table *table, const struct origin *origin,
                                 uint64_t hash)
{
    struct source *source = table->sources.count < SOURCES_MAX ? source_new(origin) : NULL;

    if (source)
        table_add(&table->sources, &source->in_table, hash);
    return source;
}

struct source *source_get(struct source_table *table, const struct origin *origin)
{
    const uintptr_t address = (uintptr_t)origin->host.data;
    struct source **recent = &table->recent[(address >> 4 ^ address >> 12) & (RECENT - 1)];
    struct source *source;
    uint64_t hash;

    if (*recent && is_source_of(*recent, origin))
        return *recent;
    hash = source_hash(table->sources.seed, origin->host, origin->clock);
    table_find(source, &table->sources, hash, in_table, is_source_of(source, origin));
    if (!source)
        source = source_add(table, origin, hash);
    if (!source)
        return &table->overflow;
    *recent = source;
    return source;
}

/* ---- from one run to the next ---------------------------------------------------------------- */

/* What a reference is: one of these, or FIRST + the source's number. */
enum { NONE, OVERFLOW, FIRST };

void source_save(const struct source_table *table, struct source *source, struct state *state)
{
    if (source == &table->overflow) {
        state_put_number(state, OVERFLOW);
        return;
    }
    if (source->saved_in == state->serial) {
        state_put_number(state, FIRST + (uint64_t)source->number);
        return;
    }
    source->saved_in = state->serial;
    source->number = state->sources_written++;
    state_put_number(state, FIRST + (uint64_t)source->number);
    state_put_text(state, source->host);
    state_put_signed(state, source->clock);
    losses_save(&source->losses, state);
    losses_save(&source->gaps, state);
    clock_state(&source->correction, state);
}

static struct source *source_restore_new(struct source_table *table, struct state *state)
{
    struct origin origin = {.host = state_get_text(state)};
    struct source *source;

    origin.clock = state_get_signed(state);
    if (!state_is_good(state))
        return NULL;
    source = source_get(table, &origin);
    if (source->is_overflow || !state_number_thing(&state->sources, source)) {
        state_set_no_memory(state);
        return NULL;
    }
    losses_restore(&source->losses, state);
    losses_restore(&source->gaps, state);
    clock_state(&source->correction, state);
    return source;
}

struct source *source_restore(struct source_table *table, struct state *state)
{
    const uint64_t reference = state_get_limited(state, FIRST + (uint64_t)state->sources.count);

    if (!state_is_good(state) || reference == NONE)
        return NULL;
    if (reference == OVERFLOW)
        return &table->overflow;
    if (reference - FIRST < state->sources.count)
        return (struct source *)(uintptr_t)state->sources.things[reference - FIRST];
    return source_restore_new(table, state);
}

static bool is_of_use(const struct source *source, int64_t since_ns)
{
    return source->losses.last_end_ns >= since_ns || source->gaps.last_end_ns >= since_ns ||
           clock_is_of_use(&source->correction, since_ns);
}

void sources_save(const struct source_table *table, int64_t since_ns, struct state *state)
{
    struct source *source;

    table_for_each(source, &table->sources, in_table)
    {
        if (source->saved_in != state->serial && is_of_use(source, since_ns))
            source_save(table, source, state);
    }
    state_put_number(state, NONE);
}

void sources_restore(struct source_table *table, struct state *state)
{
    while (source_restore(table, state))
        ;
}
