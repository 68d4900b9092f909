/*
 * What is shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static int by_count(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* The largest key first, then what has more spans, then by name: the same spans give the same
 * order. */
static int by_key(const void *a, const void *b)
{
    const struct report_row *left = a, *right = b;
    int order = (left->key < right->key) - (left->key > right->key);

    if (!order)
        order = by_count(left->row->spans, right->row->spans);
    if (!order)
        order = strcmp(left->service, right->service);
    return order ? order : strcmp(left->name, right->name);
}

static double key_of(const struct statistics_row *row, enum sort sort)
{
    switch (sort) {
    case SORT_P99:
        return (double)histogram_quantile(&row->duration, 0.99);
    case SORT_SELF:
        return row->self.sum;
    case SORT_ERRORS:
        return (double)row->errors;
    default:
        return (double)row->spans;
    }
}

double report_scale(const struct report *report)
{
    return report->spans && report->passed > report->spans
               ? (double)report->passed / (double)report->spans
               : 1;
}

static const char *name_of(const struct report *report, uint32_t id)
{
    return names_text(statistics_names(report->statistics), id).data;
}

static bool is_wanted(const struct options *options, const char *service)
{
    return !options->service || fnmatch(options->service, service, 0) == 0;
}

struct report_row *report_rows(const struct report *report, const struct options *options,
                               size_t *count)
{
    const size_t all = statistics_rows(report->statistics);
    struct report_row *rows = calloc(all + 1, sizeof(*rows));

    *count = 0;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        const struct statistics_row *row = statistics_row(report->statistics, i);
        const char *service = name_of(report, row->service);

        if (row->spans + row->duration.count + row->self.count &&
            (statistics_row_is_other(row) || is_wanted(options, service)))
            rows[(*count)++] = (struct report_row){row, service, name_of(report, row->name),
                                                   key_of(row, options->sort)};
    }
    qsort(rows, *count, sizeof(*rows), by_key);
    return rows;
}

static int by_calls(const void *a, const void *b)
{
    const struct report_edge *left = a, *right = b;
    int order = by_count(left->edge->calls, right->edge->calls);

    if (!order)
        order = strcmp(left->caller, right->caller);
    return order ? order : strcmp(left->callee, right->callee);
}

struct report_edge *report_edges(const struct report *report, const struct options *options,
                                 size_t *count)
{
    const size_t all = statistics_edges(report->statistics);
    struct report_edge *edges = calloc(all + 1, sizeof(*edges));

    *count = 0;
    if (!edges)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        const struct statistics_edge *edge = statistics_edge(report->statistics, i);
        const char *caller = name_of(report, edge->caller), *callee = name_of(report, edge->callee);

        if (edge->calls && (statistics_edge_is_other(edge) || is_wanted(options, caller) ||
                            is_wanted(options, callee)))
            edges[(*count)++] = (struct report_edge){edge, caller, callee};
    }
    qsort(edges, *count, sizeof(*edges), by_calls);
    return edges;
}

double report_self_sum(const struct report *report)
{
    double sum = 0;

    for (size_t i = 0; i < statistics_rows(report->statistics); i++)
        sum += statistics_row(report->statistics, i)->self.sum;
    return sum;
}
