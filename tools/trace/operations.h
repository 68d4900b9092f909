/* Sorts operations by a key. An operation is a row of statistics, for one service and span name; or
 * an edge, for one calling and one called service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TRACE_OPERATIONS_H
#define BLKIN_TRACE_OPERATIONS_H

#include "babeltrace-plugin/model/statistics.h"

enum operations_order {
    OPERATIONS_BY_RATE,
    OPERATIONS_BY_P99,
    OPERATIONS_BY_SELF,
    OPERATIONS_BY_ERRORS,
};

/* The row that collects names beyond the limit of the statistics has the names "". */
struct operation {
    const struct statistics_row *row;
    const char *service; /* of an edge: the caller */
    const char *name;    /* of an edge: the called service */
    double key;          /* the sort key */
};

/*
 * Returns the operations of services that match the glob (NULL: all services), the largest key
 * first. An edge matches by either service. The row for names beyond the limit always matches. Rows
 * without spans are left out. Sets *count. The caller frees the array; NULL: out of memory.
 */
struct operation *operations(const struct statistics *statistics, enum statistics_kind kind,
                             enum operations_order order, const char *glob, size_t *count);

/* Sums operations. Returns false with a partial sum when out of memory. The caller clears the sum's
 * histograms in any case. */
bool operations_sum(const struct operation *operations, size_t count, struct statistics_row *sum);

#endif
