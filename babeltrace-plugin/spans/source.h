/*
 * Sources of events: a tracing session of a host, stored once, with the state that its spans share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_SOURCE_H
#define BLKIN_CORE_SOURCE_H

#include "clock.h"
#include "event.h"
#include "loss.h"

#include "babeltrace-plugin/base/table.h"

struct event_source {
    struct table_link in_table;
    struct text host;
    int64_t clock;
    uint64_t host_hash;
    bool is_overflow;
    struct losses losses; /* reported by LTTng */
    struct losses gaps;   /* gaps in sequence numbers */
    struct clock correction;
};

struct source_table;

/* Returns NULL when out of memory. */
struct source_table *source_table_new(void);
void source_table_free(struct source_table *table);

/* Returns the table's source of this origin. Sources beyond SOURCES_MAX, or without memory, share
 * one source, the overflow, which notes nothing. */
#define SOURCES_MAX 4096

struct event_source *source_get(struct source_table *table, const struct origin *origin);

#endif
