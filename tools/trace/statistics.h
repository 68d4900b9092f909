/*
 * Statistics of many spans: a row for each service and name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STATISTICS_H
#define BLKIN_TOOLS_STATISTICS_H

#include "analysis/histogram.h"
#include "tree.h"

/* With more, spans of new names are counted in one row for all others. */
#define STATISTICS_ROWS_MAX 4096

struct statistics_row {
    const char *service;
    const char *name;
    bool is_other;
    uint64_t spans;
    uint64_t errors;
    struct histogram duration; /* of those whose duration is known; as is self */
    struct histogram self;
};

struct statistics;

/* Returns NULL when out of memory. */
struct statistics *statistics_new(void);
void statistics_free(struct statistics *statistics);

/* Without rows from now on. */
void statistics_clear(struct statistics *statistics);

/* Out of memory: these return false. */
bool statistics_add_span(struct statistics *statistics, const struct span *span);
bool statistics_add_self_times(struct statistics *statistics, const struct trace *arranged);
bool statistics_merge_row(struct statistics_row *row, const struct statistics_row *other);

/* In no order. */
size_t statistics_count(const struct statistics *statistics);
const struct statistics_row *statistics_row(const struct statistics *statistics, size_t i);

void statistics_clear_row(struct statistics_row *row);

#endif
