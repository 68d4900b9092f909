/*
 * Rows and edges, found by pairs of numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "statistics.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

#define PAST_MAX (UINT64_C(1) << 20)

_Static_assert(STATISTICS_ROWS_MAX == STATISTICS_EDGES_MAX, "one limit does for both");
#define ITEMS_MAX STATISTICS_ROWS_MAX

struct pair {
    uint32_t first;
    uint32_t second;
};

/* Stands before a row or an edge, in one block of memory. */
struct head {
    struct table_link in_table;
    struct pair pair;
};

struct items {
    struct table table;
    void *list[ITEMS_MAX]; /* as they came; table.count of them */
};

struct statistics {
    struct names *names;
    uint64_t period;
    struct items rows;
    struct items edges;
};

_Static_assert(offsetof(struct statistics_row, service) == offsetof(struct pair, first) &&
                   offsetof(struct statistics_row, name) == offsetof(struct pair, second) &&
                   offsetof(struct statistics_edge, caller) == offsetof(struct pair, first) &&
                   offsetof(struct statistics_edge, callee) == offsetof(struct pair, second),
               "they begin with their pair");

static uint64_t pair_hash(uint64_t seed, struct pair pair)
{
    return hash_number(seed, (uint64_t)pair.first << 32 | pair.second);
}

struct statistics *statistics_new(struct names *names)
{
    struct statistics *statistics = calloc(1, sizeof(*statistics));

    if (!statistics)
        return NULL;
    statistics->names = names;
    if (table_init(&statistics->rows.table) && table_init(&statistics->edges.table))
        return statistics;
    statistics_free(statistics);
    return NULL;
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

static void free_items(struct items *items)
{
    while (items->table.count) {
        struct head *head = (struct head *)items->list[items->table.count - 1] - 1;

        table_remove(&items->table, &head->in_table);
        free(head);
    }
}

void statistics_clear(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->rows.table.count; i++) {
        struct statistics_row *row = statistics->rows.list[i];

        clear_row(row);
        histogram_clear(&row->past);
    }
    for (size_t i = 0; i < statistics->edges.table.count; i++)
        clear_edge(statistics->edges.list[i]);
    free_items(&statistics->rows);
    free_items(&statistics->edges);
    statistics->period++;
}

void statistics_free(struct statistics *statistics)
{
    if (!statistics)
        return;
    statistics_clear(statistics);
    table_destroy(&statistics->rows.table, NULL);
    table_destroy(&statistics->edges.table, NULL);
    free(statistics);
}

/* ---- finding */

static const struct pair other = {NAMES_OTHER, NAMES_OTHER};

static void *find_pair(const struct items *items, struct pair pair)
{
    const uint64_t hash = pair_hash(items->table.seed, pair);
    struct head *head;

    table_find(head, &items->table, hash, in_table,
               head->pair.first == pair.first && head->pair.second == pair.second);
    return head ? head + 1 : NULL;
}

static bool are_full(const struct items *items)
{
    return items->table.count >= ITEMS_MAX - 1;
}

static void *items_find(const struct items *items, struct pair pair)
{
    void *item = find_pair(items, pair);

    return item || !are_full(items) ? item : find_pair(items, other);
}

/* The last one is for all others. Returns NULL when out of memory. */
static void *find_or_add(struct items *items, size_t size, struct pair pair)
{
    void *item = items_find(items, pair);
    struct head *head;

    if (item)
        return item;
    head = calloc(1, sizeof(*head) + size);
    if (!head)
        return NULL;
    head->pair = are_full(items) ? other : pair;
    item = head + 1;
    memcpy(item, &head->pair, sizeof(head->pair));
    items->list[items->table.count] = item;
    table_add(&items->table, &head->in_table, pair_hash(items->table.seed, head->pair));
    return item;
}

struct statistics_row *statistics_row_of(struct statistics *statistics, uint32_t service,
                                         uint32_t name)
{
    const size_t count = statistics->rows.table.count;
    struct statistics_row *row =
        find_or_add(&statistics->rows, sizeof(struct statistics_row), (struct pair){service, name});

    if (statistics->rows.table.count != count)
        row->index = (uint32_t)count;
    return row;
}

const struct statistics_row *statistics_find_row(const struct statistics *statistics,
                                                 uint32_t service, uint32_t name)
{
    return items_find(&statistics->rows, (struct pair){service, name});
}

struct statistics_edge *statistics_edge_of(struct statistics *statistics, uint32_t caller,
                                           uint32_t callee)
{
    return find_or_add(&statistics->edges, sizeof(struct statistics_edge),
                       (struct pair){caller, callee});
}

/* ---- adding */

bool statistics_count(struct statistics_row *row, const struct trace_span *span)
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

    return row && statistics_count(row, span);
}

/* ---- periods */

void statistics_begin_period(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->rows.table.count; i++) {
        struct statistics_row *row = statistics->rows.list[i];

        (void)histogram_merge(&row->past, &row->duration);
        while (row->past.count > PAST_MAX)
            histogram_halve(&row->past);
        clear_row(row);
    }
    for (size_t i = 0; i < statistics->edges.table.count; i++)
        clear_edge(statistics->edges.list[i]);
    statistics->period++;
}

uint64_t statistics_period(const struct statistics *statistics)
{
    return statistics->period;
}

/* ---- reading */

size_t statistics_bytes(const struct statistics *statistics)
{
    size_t bytes = 0;

    for (size_t i = 0; i < statistics->rows.table.count; i++) {
        const struct statistics_row *row = statistics->rows.list[i];

        bytes += histogram_bytes(&row->duration) + histogram_bytes(&row->self) +
                 histogram_bytes(&row->past);
    }
    for (size_t i = 0; i < statistics->edges.table.count; i++)
        bytes += histogram_bytes(&((struct statistics_edge *)statistics->edges.list[i])->duration);
    return bytes;
}

size_t statistics_rows(const struct statistics *statistics)
{
    return statistics->rows.table.count;
}

const struct statistics_row *statistics_row(const struct statistics *statistics, size_t i)
{
    return statistics->rows.list[i];
}

size_t statistics_edges(const struct statistics *statistics)
{
    return statistics->edges.table.count;
}

const struct statistics_edge *statistics_edge(const struct statistics *statistics, size_t i)
{
    return statistics->edges.list[i];
}

const struct names *statistics_names(const struct statistics *statistics)
{
    return statistics->names;
}
