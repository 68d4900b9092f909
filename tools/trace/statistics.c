/*
 * Statistics of many spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "statistics.h"

#include "core/hash.h"
#include "self.h"

#include <stdlib.h>
#include <string.h>

/* Open addressing; never more than a quarter full. */
#define PLACES (4U * STATISTICS_ROWS_MAX)

struct statistics {
    uint64_t seed;
    size_t count;
    struct statistics_row *rows[STATISTICS_ROWS_MAX];
    struct statistics_row *places[PLACES];
};

struct statistics *statistics_new(void)
{
    struct statistics *statistics = calloc(1, sizeof(*statistics));

    if (statistics)
        statistics->seed = hash_seed(statistics);
    return statistics;
}

void statistics_clear_row(struct statistics_row *row)
{
    histogram_clear(&row->duration);
    histogram_clear(&row->self);
    row->spans = row->errors = 0;
}

void statistics_clear(struct statistics *statistics)
{
    for (size_t i = 0; i < statistics->count; i++) {
        statistics_clear_row(statistics->rows[i]);
        free(statistics->rows[i]);
    }
    statistics->count = 0;
    memset(statistics->places, 0, sizeof(statistics->places));
}

void statistics_free(struct statistics *statistics)
{
    if (!statistics)
        return;
    statistics_clear(statistics);
    free(statistics);
}

static struct statistics_row *new_row(struct statistics *statistics, const char *service,
                                      const char *name)
{
    const size_t service_size = strlen(service) + 1, name_size = strlen(name) + 1;
    struct statistics_row *row = calloc(1, sizeof(*row) + service_size + name_size);
    char *texts;

    if (!row)
        return NULL;
    texts = (char *)(row + 1);
    row->service = memcpy(texts, service, service_size);
    row->name = memcpy(texts + service_size, name, name_size);
    statistics->rows[statistics->count++] = row;
    return row;
}

static bool is_of(const struct statistics_row *row, const char *service, const char *name)
{
    return !row->is_other && strcmp(row->service, service) == 0 && strcmp(row->name, name) == 0;
}

/* The last row is for all others. */
static struct statistics_row *other_row(struct statistics *statistics)
{
    struct statistics_row *row;

    if (statistics->count == STATISTICS_ROWS_MAX)
        return statistics->rows[STATISTICS_ROWS_MAX - 1];
    row = new_row(statistics, "", "");
    if (row)
        row->is_other = true;
    return row;
}

/* Returns NULL when out of memory. */
static struct statistics_row *find_row(struct statistics *statistics, const struct span *span)
{
    const uint64_t hash =
        hash_text(hash_text(statistics->seed, text_of(span->service)), text_of(span->name));
    size_t place = hash % PLACES;

    for (; statistics->places[place]; place = (place + 1) % PLACES) {
        if (is_of(statistics->places[place], span->service, span->name))
            return statistics->places[place];
    }
    if (statistics->count >= STATISTICS_ROWS_MAX - 1)
        return other_row(statistics);
    statistics->places[place] = new_row(statistics, span->service, span->name);
    return statistics->places[place];
}

bool statistics_add_span(struct statistics *statistics, const struct span *span)
{
    struct statistics_row *row = find_row(statistics, span);

    if (!row || (span->duration && !histogram_add(&row->duration, span->duration)))
        return false;
    row->spans++;
    row->errors += span->error != NULL;
    return true;
}

bool statistics_add_self_times(struct statistics *statistics, const struct trace *arranged)
{
    for (const struct node *node = arranged->top; node; node = node_after(node)) {
        struct statistics_row *row;

        if (!node->span->duration)
            continue;
        row = find_row(statistics, node->span);
        if (!row || !histogram_add(&row->self, self_time(node)))
            return false;
    }
    return true;
}

bool statistics_merge_row(struct statistics_row *row, const struct statistics_row *other)
{
    row->spans += other->spans;
    row->errors += other->errors;
    return histogram_merge(&row->duration, &other->duration) &&
           histogram_merge(&row->self, &other->self);
}

size_t statistics_count(const struct statistics *statistics)
{
    return statistics->count;
}

const struct statistics_row *statistics_row(const struct statistics *statistics, size_t i)
{
    return statistics->rows[i];
}
