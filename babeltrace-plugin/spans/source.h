/*
 * Where events come from: a tracing session of a host. Kept once each, with what the spans from
 * there share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_SOURCE_H
#define BLKIN_CORE_SOURCE_H

#include "clock.h"
#include "event.h"
#include "loss.h"

#include "babeltrace-plugin/base/table.h"

struct source {
    struct table_link in_table;
    struct text host;
    int64_t clock;
    uint64_t host_hash;
    bool is_overflow;
    struct losses losses; /* that LTTng tells of */
    struct losses gaps;   /* in sequence numbers */
    struct clock correction;
    uint64_t saved_in; /* a state's serial, */
    uint32_t number;   /* and its number in there */
};

struct source_table;

/* Returns NULL when out of memory. */
struct source_table *source_table_new(void);
void source_table_free(struct source_table *table);

/*
 * The source of events of this origin, owned by the table. Those beyond SOURCES_MAX, and those for
 * which there is no memory, share one, the overflow, for which nothing is noted.
 */
#define SOURCES_MAX 4096

struct source *source_get(struct source_table *table, const struct origin *origin);

/* A reference to a source of the table, and back: NULL if that fails. */
void source_save(const struct source_table *table, struct source *source, struct state *state);
struct source *source_restore(struct source_table *table, struct state *state);

/* Those that are not saved yet, and tell of what was not before since_ns. */
void sources_save(const struct source_table *table, int64_t since_ns, struct state *state);
void sources_restore(struct source_table *table, struct state *state);

#endif
