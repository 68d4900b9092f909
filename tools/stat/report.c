/*
 * What is shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef const struct statistics_row *const *row_at;

static int by_number(double a, double b)
{
    return (a < b) - (a > b);
}

/* What has more spans, then by name: the same spans give the same order. */
static int by_spans(const void *a, const void *b)
{
    const struct statistics_row *left = *(row_at)a, *right = *(row_at)b;
    int order = (left->spans < right->spans) - (left->spans > right->spans);

    if (!order)
        order = strcmp(left->service, right->service);
    return order ? order : strcmp(left->name, right->name);
}

static int by_errors(const void *a, const void *b)
{
    const struct statistics_row *left = *(row_at)a, *right = *(row_at)b;
    const int order = (left->errors < right->errors) - (left->errors > right->errors);

    return order ? order : by_spans(a, b);
}

static int by_p99(const void *a, const void *b)
{
    const struct statistics_row *left = *(row_at)a, *right = *(row_at)b;
    const int order = by_number((double)histogram_quantile(&left->duration, 0.99),
                                (double)histogram_quantile(&right->duration, 0.99));

    return order ? order : by_spans(a, b);
}

static int by_self(const void *a, const void *b)
{
    const struct statistics_row *left = *(row_at)a, *right = *(row_at)b;
    const int order = by_number(left->self.sum, right->self.sum);

    return order ? order : by_spans(a, b);
}

double report_scale(const struct report *report)
{
    return report->spans && report->passed > report->spans
               ? (double)report->passed / (double)report->spans
               : 1;
}

const struct statistics_row **report_rows(const struct report *report,
                                          const struct options *options, size_t *count)
{
    static int (*const orders[])(const void *, const void *) = {[SORT_RATE] = by_spans,
                                                                [SORT_P99] = by_p99,
                                                                [SORT_SELF] = by_self,
                                                                [SORT_ERRORS] = by_errors};
    const size_t all = statistics_count(report->statistics);
    const struct statistics_row **rows = calloc(all + 1, sizeof(*rows));

    *count = 0;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        const struct statistics_row *row = statistics_row(report->statistics, i);

        if (!options->service || row->is_other || fnmatch(options->service, row->service, 0) == 0)
            rows[(*count)++] = row;
    }
    qsort(rows, *count, sizeof(*rows), orders[options->sort]);
    return rows;
}

double report_self_sum(const struct report *report)
{
    double sum = 0;

    for (size_t i = 0; i < statistics_count(report->statistics); i++)
        sum += statistics_row(report->statistics, i)->self.sum;
    return sum;
}
