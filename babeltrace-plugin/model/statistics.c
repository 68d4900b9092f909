/*
 * Rows and edges, found by pairs of numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "statistics.h"

#include "babeltrace-plugin/base/hash.h"
#include "calls.h"

#include <stdlib.h>

#define PAST_MAX (UINT64_C(1) << 20)

_Static_assert(STATISTICS_ROWS_MAX == STATISTICS_EDGES_MAX, "one limit does for both");
#define ITEMS_MAX STATISTICS_ROWS_MAX
#define PLACES    (4U * ITEMS_MAX) /* a power of two */

struct pair {
    uint32_t first;
    uint32_t second;
};

/* Open addressing; never more than a quarter full. An item is allocated, and begins with its pair.
 */
struct table {
    size_t count;
    void *items[ITEMS_MAX];
    struct place {
        struct pair pair;
        uint32_t item; /* and 1; 0: free */
    } places[PLACES];
};

struct statistics {
    struct names *names;
    uint64_t seed;
    uint64_t period;
    struct table rows;
    struct table edges;
};

_Static_assert(offsetof(struct statistics_row, service) == offsetof(struct pair, first) &&
                   offsetof(struct statistics_row, name) == offsetof(struct pair, second) &&
                   offsetof(struct statistics_edge, caller) == offsetof(struct pair, first) &&
                   offsetof(struct statistics_edge, callee) == offsetof(struct pair, second),
               "they begin with their pair");

struct statistics *statistics_new(struct names *names)
{
    struct statistics *statistics = calloc(1, sizeof(*statistics));

    if (!statistics)
        return NULL;
    statistics->names = names;
    statistics->seed = hash_seed(statistics);
    return statistics;
}

/* Where the pair is, or would be. */
static struct place *place_of(const struct statistics *statistics, const struct table *table,
                              struct pair pair)
{
    const uint64_t hash = hash_mix(statistics->seed ^ ((uint64_t)pair.first << 32 | pair.second));
    uint32_t i = (uint32_t)hash % PLACES;

    while (table->places[i].item && (table->places[i].pair.first != pair.first ||
                                     table->places[i].pair.second != pair.second))
        i = (i + 1) % PLACES;
    return (struct place *)(uintptr_t)&table->places[i];
}

static void clear_row(struct statistics_row *row)
{
    histogram_clear(&row->duration);
    histogram_clear(&row->self);
    row->spans = row->errors = 0;
}

static void clear_edge(struct statistics_edge *edge)
{
    histogram_clear(&edge->duration);
    edge->calls = edge->errors = 0;
}

/* From the last one on: those before were found without it. */
static void clear_table(const struct statistics *statistics, struct table *table)
{
    while (table->count) {
        void *item = table->items[--table->count];
        struct pair pair;

        memcpy(&pair, item, sizeof(pair));
        place_of(statistics, table, pair)->item = 0;
        free(item);
    }
}

void statistics_clear(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->rows.count; i++) {
        struct statistics_row *row = statistics->rows.items[i];

        clear_row(row);
        histogram_clear(&row->past);
    }
    for (size_t i = 0; i < statistics->edges.count; i++)
        clear_edge(statistics->edges.items[i]);
    clear_table(statistics, &statistics->rows);
    clear_table(statistics, &statistics->edges);
    statistics->period++;
}

void statistics_free(struct statistics *statistics)
{
    if (!statistics)
        return;
    statistics_clear(statistics);
    free(statistics);
}

/* ---- finding */

static const struct pair other = {NAMES_OTHER, NAMES_OTHER};

static void *find(const struct statistics *statistics, const struct table *table, struct pair pair)
{
    const struct place *place = place_of(statistics, table, pair);

    if (!place->item && table->count >= ITEMS_MAX - 1)
        place = place_of(statistics, table, other);
    return place->item ? table->items[place->item - 1] : NULL;
}

/* The last one is for all others. Returns NULL when out of memory. */
static void *find_or_add(const struct statistics *statistics, struct table *table, size_t size,
                         struct pair pair)
{
    struct place *place = place_of(statistics, table, pair);
    void *item;

    if (!place->item && table->count >= ITEMS_MAX - 1) {
        pair = other;
        place = place_of(statistics, table, pair);
    }
    if (place->item)
        return table->items[place->item - 1];
    item = calloc(1, size);
    if (!item)
        return NULL;
    memcpy(item, &pair, sizeof(pair));
    table->items[table->count++] = item;
    *place = (struct place){pair, (uint32_t)table->count};
    return item;
}

struct statistics_row *statistics_row_of(struct statistics *statistics, uint32_t service,
                                         uint32_t name)
{
    const size_t count = statistics->rows.count;
    struct statistics_row *row = find_or_add(
        statistics, &statistics->rows, sizeof(struct statistics_row), (struct pair){service, name});

    if (statistics->rows.count != count)
        row->index = (uint32_t)count;
    return row;
}

const struct statistics_row *statistics_find_row(const struct statistics *statistics,
                                                 uint32_t service, uint32_t name)
{
    return find(statistics, &statistics->rows, (struct pair){service, name});
}

struct statistics_edge *statistics_edge_of(struct statistics *statistics, uint32_t caller,
                                           uint32_t callee)
{
    return find_or_add(statistics, &statistics->edges, sizeof(struct statistics_edge),
                       (struct pair){caller, callee});
}

/* ---- adding */

static bool count_span(struct statistics_row *row, const struct trace_span *span)
{
    if (span->duration_ns && !histogram_add(&row->duration, span->duration_ns))
        return false;
    row->spans++;
    row->ever++;
    row->errors += span->is_error;
    return true;
}

bool statistics_add_span(struct statistics *statistics, const struct trace_span *span)
{
    struct statistics_row *row = statistics_row_of(statistics, span->service, span->name);

    return row && count_span(row, span);
}

bool statistics_add_self_times(struct statistics *statistics, const struct trace_model *linked)
{
    for (uint32_t i = 0; i < linked->count; i++) {
        const struct trace_span *span = &linked->spans[i];
        struct statistics_row *row;

        if (!span->duration_ns)
            continue;
        row = statistics_row_of(statistics, span->service, span->name);
        if (!row || !histogram_add(&row->self, linked->nodes[i].self_ns))
            return false;
    }
    return true;
}

static bool add_calls_of(struct statistics *statistics, const struct trace_model *linked,
                         uint32_t span)
{
    struct trace_call calls[TRACE_CALLS_MAX];
    const int count = trace_calls(linked, span, calls);

    for (int i = 0; i < count; i++) {
        struct statistics_edge *edge =
            statistics_edge_of(statistics, calls[i].caller, calls[i].callee);

        if (!edge ||
            (calls[i].duration_ns && !histogram_add(&edge->duration, calls[i].duration_ns)))
            return false;
        edge->calls++;
        edge->errors += calls[i].is_error;
    }
    return true;
}

bool statistics_add_calls(struct statistics *statistics, const struct trace_model *linked)
{
    for (uint32_t i = 0; i < linked->count; i++) {
        if (!add_calls_of(statistics, linked, i))
            return false;
    }
    return true;
}

static bool count_linked(struct statistics *statistics, struct statistics_row *row,
                         const struct trace_model *linked, uint32_t i)
{
    const struct trace_span *span = &linked->spans[i];

    return count_span(row, span) &&
           (!span->duration_ns || histogram_add(&row->self, linked->nodes[i].self_ns)) &&
           add_calls_of(statistics, linked, i);
}

/* So many rows are found before the first of them is written to: till then all are in the cache. */
#define ROWS_AHEAD 16U

bool statistics_add_trace(struct statistics *statistics, const struct trace_model *linked)
{
    struct statistics_row *rows[ROWS_AHEAD];

    for (uint32_t first = 0; first < linked->count; first += ROWS_AHEAD) {
        const uint32_t left = linked->count - first;
        const uint32_t count = left < ROWS_AHEAD ? left : ROWS_AHEAD;

        for (uint32_t i = 0; i < count; i++) {
            const struct trace_span *span = &linked->spans[first + i];

            rows[i] = statistics_row_of(statistics, span->service, span->name);
            if (!rows[i])
                return false;
            histogram_fetch(&rows[i]->duration, span->duration_ns);
            histogram_fetch(&rows[i]->self, linked->nodes[first + i].self_ns);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!count_linked(statistics, rows[i], linked, first + i))
                return false;
        }
    }
    return true;
}

/* ---- periods */

void statistics_begin_period(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->rows.count; i++) {
        struct statistics_row *row = statistics->rows.items[i];

        (void)histogram_merge(&row->past, &row->duration);
        while (row->past.count > PAST_MAX)
            histogram_halve(&row->past);
        clear_row(row);
    }
    for (size_t i = 0; i < statistics->edges.count; i++)
        clear_edge(statistics->edges.items[i]);
    statistics->period++;
}

uint64_t statistics_period(const struct statistics *statistics)
{
    return statistics->period;
}

/* ---- reading */

size_t statistics_rows(const struct statistics *statistics)
{
    return statistics->rows.count;
}

const struct statistics_row *statistics_row(const struct statistics *statistics, size_t i)
{
    return statistics->rows.items[i];
}

size_t statistics_edges(const struct statistics *statistics)
{
    return statistics->edges.count;
}

const struct statistics_edge *statistics_edge(const struct statistics *statistics, size_t i)
{
    return statistics->edges.items[i];
}

const struct names *statistics_names(const struct statistics *statistics)
{
    return statistics->names;
}
