/* SPDX-License-Identifier: BSD-2-Clause */
#include "statistics.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

/* ---- rows and edges -------------------------------------------------------------------------- */

#define PAST_MAX (UINT64_C(1) << 20) /* with more spans, `past` is halved */

struct name_pair {
    uint32_t first;
    uint32_t second;
};

struct statistics_item {
    struct table_link in_table;
    struct statistics_row row;
};

struct items {
    struct table table;
    struct statistics_item *list[STATISTICS_ROWS_MAX]; /* table.count items, by creation */
};

struct statistics {
    struct names *names;
    uint64_t period;
    struct items kinds[STATISTICS_KINDS];
};

static uint64_t pair_hash(uint64_t seed, struct name_pair pair)
{
    return hash_number(seed, (uint64_t)pair.first << 32 | pair.second);
}

struct statistics *statistics_new(struct names *names)
{
    struct statistics *statistics = calloc(1, sizeof(*statistics));

    if (!statistics)
        return NULL;
    statistics->names = names;
    if (table_init(&statistics->kinds[STATISTICS_ROWS].table) &&
        table_init(&statistics->kinds[STATISTICS_EDGES].table))
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

void statistics_clear(struct statistics *statistics)
{
    for (int kind = 0; kind < STATISTICS_KINDS; kind++) {
        struct items *items = &statistics->kinds[kind];

        while (items->table.count) {
            struct statistics_item *item = items->list[items->table.count - 1];

            table_remove(&items->table, &item->in_table);
            clear_row(&item->row);
            histogram_clear(&item->row.past);
            free(item);
        }
    }
    statistics->period++;
}

void statistics_free(struct statistics *statistics)
{
    if (!statistics)
        return;
    statistics_clear(statistics);
    for (int kind = 0; kind < STATISTICS_KINDS; kind++)
        table_destroy(&statistics->kinds[kind].table, NULL);
    free(statistics);
}

/* ---- finding */

static const struct name_pair other = {NAMES_OTHER, NAMES_OTHER};

static struct statistics_row *find_pair(const struct items *items, struct name_pair pair)
{
    const uint64_t hash = pair_hash(items->table.seed, pair);
    struct statistics_item *item;

    table_find(item, &items->table, hash, in_table,
               item->row.service == pair.first && item->row.name == pair.second);
    return item ? &item->row : NULL;
}

static bool are_full(const struct items *items)
{
    return items->table.count >= STATISTICS_ROWS_MAX - 1;
}

static struct statistics_row *items_find(const struct items *items, struct name_pair pair)
{
    struct statistics_row *row = find_pair(items, pair);

    return row || !are_full(items) ? row : find_pair(items, other);
}

/* The last row stands for all other pairs. */
struct statistics_row *statistics_add(struct statistics *statistics, enum statistics_kind kind,
                                      uint32_t first, uint32_t second)
{
    struct items *items = &statistics->kinds[kind];
    struct name_pair pair = {first, second};
    struct statistics_row *row = items_find(items, pair);
    struct statistics_item *item = row ? NULL : calloc(1, sizeof(*item));

    if (!item)
        return row;
    if (are_full(items))
        pair = other;
    item->row.service = pair.first;
    item->row.name = pair.second;
    item->row.index = (uint32_t)items->table.count;
    items->list[items->table.count] = item;
    table_add(&items->table, &item->in_table, pair_hash(items->table.seed, pair));
    return &item->row;
}

const struct statistics_row *statistics_find_row(const struct statistics *statistics,
                                                 uint32_t service, uint32_t name)
{
    return items_find(&statistics->kinds[STATISTICS_ROWS], (struct name_pair){service, name});
}

/* ---- adding */

static bool statistics_count(struct statistics_row *row, const struct trace_span *span)
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
    struct statistics_row *row =
        statistics_add(statistics, STATISTICS_ROWS, span->service, span->name);

    return row && statistics_count(row, span);
}

/* ---- periods */

void statistics_begin_period(struct statistics *statistics)
{
    for (int kind = 0; kind < STATISTICS_KINDS; kind++) {
        for (size_t i = 0; i < statistics->kinds[kind].table.count; i++) {
            struct statistics_row *row = &statistics->kinds[kind].list[i]->row;

            if (kind == STATISTICS_ROWS)
                (void)histogram_merge(&row->past, &row->duration);
            while (row->past.count > PAST_MAX)
                histogram_halve(&row->past);
            clear_row(row);
        }
    }
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

    for (int kind = 0; kind < STATISTICS_KINDS; kind++) {
        for (size_t i = 0; i < statistics->kinds[kind].table.count; i++) {
            const struct statistics_row *row = &statistics->kinds[kind].list[i]->row;

            bytes += histogram_bytes(&row->duration) + histogram_bytes(&row->self) +
                     histogram_bytes(&row->past);
        }
    }
    return bytes;
}

size_t statistics_size(const struct statistics *statistics, enum statistics_kind kind)
{
    return statistics->kinds[kind].table.count;
}

const struct statistics_row *statistics_at(const struct statistics *statistics,
                                           enum statistics_kind kind, size_t i)
{
    return &statistics->kinds[kind].list[i]->row;
}

const struct names *statistics_names(const struct statistics *statistics)
{
    return statistics->names;
}

/* ---- calls, and whole traces in statistics --------------------------------------------------- */

static int add_call(struct trace_call *calls, int count, uint32_t caller, uint32_t callee,
                    const struct trace_span *span, bool is_error)
{
    if (caller == NAMES_NONE || callee == NAMES_NONE)
        return count;
    calls[count] = (struct trace_call){caller, callee, span->duration_ns, is_error};
    return count + 1;
}

/* A client without a child calls a service that is not traced. */
static int client_calls(const struct trace_span *span, const struct trace_span *above,
                        bool is_error, struct trace_call *calls)
{
    const uint32_t caller = span->service == NAMES_NONE && above ? above->service : span->service;
    int count = 0;

    if (above && above->service != span->service)
        count = add_call(calls, count, above->service, span->service, span, false);
    return add_call(calls, count, caller, span->remote_service, span, is_error);
}

static int server_calls(const struct trace_span *span, const struct trace_span *above,
                        bool is_error, struct trace_call *calls)
{
    const uint32_t caller =
        above && above->service != NAMES_NONE ? above->service : span->remote_service;

    return add_call(calls, 0, caller, span->service, span, is_error);
}

/* The calls that Zipkin's linker finds. */
static int known_calls(const struct trace_model *trace, uint32_t i, struct trace_call *calls)
{
    const struct trace_span *span = &trace->spans[i];
    const struct trace_node *node = &trace->nodes[i];
    const struct trace_span *above =
        node->ancestor_with_kind == TRACE_NONE ? NULL : &trace->spans[node->ancestor_with_kind];
    /* the caller may see an error that the server does not see */
    const bool is_error =
        span->is_error || (above && above->is_error && above->kind == SPAN_CLIENT &&
                           above->service != NAMES_NONE && span->parent_id == above->id);

    switch (span->kind) {
    case SPAN_SERVER:
        return server_calls(span, above, is_error, calls);
    case SPAN_CLIENT:
        return node->first_child == TRACE_NONE ? client_calls(span, above, is_error, calls) : 0;
    case SPAN_PRODUCER:
        return add_call(calls, 0, span->service, span->remote_service, span, span->is_error);
    case SPAN_CONSUMER:
        return add_call(calls, 0, span->remote_service, span->service, span, span->is_error);
    default:
        return span->service != NAMES_NONE && span->remote_service != NAMES_NONE
                   ? client_calls(span, above, is_error, calls)
                   : 0;
    }
}

int trace_calls(const struct trace_model *linked, uint32_t span,
                struct trace_call calls[TRACE_CALLS_MAX])
{
    const struct trace_span *self = &linked->spans[span];
    const uint32_t parent = linked->nodes[span].parent;
    int count = 0;

    if (self->kind != SPAN_LOCAL || self->remote_service != NAMES_NONE)
        count = known_calls(linked, span, calls);
    if (count || self->kind == SPAN_PRODUCER || self->kind == SPAN_CONSUMER ||
        parent == TRACE_NONE || linked->spans[parent].service == self->service)
        return count;
    return add_call(calls, 0, linked->spans[parent].service, self->service, self, self->is_error);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static bool add_calls_of(struct statistics *statistics, const struct trace_model *linked,
                         uint32_t span)
{
    struct trace_call calls[TRACE_CALLS_MAX];
    const int count = trace_calls(linked, span, calls);

    for (int i = 0; i < count; i++) {
        struct statistics_row *edge =
            statistics_add(statistics, STATISTICS_EDGES, calls[i].caller, calls[i].callee);

        if (!edge ||
            (calls[i].duration_ns && !histogram_add(&edge->duration, calls[i].duration_ns)))
            return false;
        edge->calls++;
        edge->errors += calls[i].is_error;
    }
    return true;
}

static bool add_rest_of(struct statistics *statistics, struct statistics_row *row,
                        const struct trace_model *linked, uint32_t i)
{
    return row &&
           (!linked->spans[i].duration_ns || histogram_add(&row->self, linked->nodes[i].self_ns)) &&
           add_calls_of(statistics, linked, i);
}

bool statistics_add_rest(struct statistics *statistics, const struct trace_model *linked)
{
    for (uint32_t i = 0; i < linked->count; i++) {
        const struct trace_span *span = &linked->spans[i];

        if (!add_rest_of(statistics,
                         statistics_add(statistics, STATISTICS_ROWS, span->service, span->name),
                         linked, i))
            return false;
    }
    return true;
}

/* The number of rows that are looked up before the first one is changed: the lookups bring them
 * into the CPU's cache. */
#define ROWS_AHEAD 16U

bool statistics_add_trace(struct statistics *statistics, const struct trace_model *linked)
{
    struct statistics_row *rows[ROWS_AHEAD];

    for (uint32_t first = 0; first < linked->count; first += ROWS_AHEAD) {
        const uint32_t left = linked->count - first;
        const uint32_t count = left < ROWS_AHEAD ? left : ROWS_AHEAD;

        for (uint32_t i = 0; i < count; i++) {
            const struct trace_span *span = &linked->spans[first + i];

            rows[i] = statistics_add(statistics, STATISTICS_ROWS, span->service, span->name);
            if (!rows[i])
                return false;
            histogram_prefetch(&rows[i]->duration, span->duration_ns);
            histogram_prefetch(&rows[i]->self, linked->nodes[first + i].self_ns);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!statistics_count(rows[i], &linked->spans[first + i]) ||
                !add_rest_of(statistics, rows[i], linked, first + i))
                return false;
        }
    }
    return true;
}
