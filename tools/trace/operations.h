/*
 * Operations: a row of statistics for each service and span name, in the order that is asked for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TRACE_OPERATIONS_H
#define BLKIN_TRACE_OPERATIONS_H

#include "babeltrace-plugin/model/statistics.h"

#include <fnmatch.h>

enum operations_order {
    OPERATIONS_BY_RATE,
    OPERATIONS_BY_P99,
    OPERATIONS_BY_SELF,
    OPERATIONS_BY_ERRORS,
};

/* The names of the row for all others are "". */
struct operation {
    const struct statistics_row *row;
    const char *service;
    const char *name;
    double key; /* that it is sorted by */
};

/*
 * Those of the services that the glob fits (NULL: all), and the row for all others; the largest
 * first. *count of them; free(3) the array. Returns NULL when out of memory.
 */
struct operation *operations(const struct statistics *statistics, enum operations_order order,
                             const char *glob, size_t *count);

/* Adds up what there is no room for. Out of memory: returns false, and only a part is added. The
 * sum's histograms are to be cleared in both cases. */
bool operations_sum(const struct operation *operations, size_t count, struct statistics_row *sum);

static inline bool operations_want(const char *glob, const char *service)
{
    return !glob || fnmatch(glob, service, 0) == 0;
}

#endif
