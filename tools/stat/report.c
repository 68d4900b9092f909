/*
 * What is shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

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

static int by_calls(const void *a, const void *b)
{
    const struct report_edge *left = a, *right = b;
    int order = (left->edge->calls < right->edge->calls) - (left->edge->calls > right->edge->calls);

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

        if (edge->calls &&
            (statistics_edge_is_other(edge) || operations_want(options->service, caller) ||
             operations_want(options->service, callee)))
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
