/* Sorts and sums operations.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "operations.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Sorts by key, then by number of spans, then by name, so that the order depends on the spans only.
 */
static int by_key(const void *a, const void *b)
{
    const struct operation *left = a, *right = b;
    int order = (left->key < right->key) - (left->key > right->key);

    if (!order)
        order = (left->row->spans < right->row->spans) - (left->row->spans > right->row->spans);
    if (!order)
        order = strcmp(left->service, right->service);
    return order ? order : strcmp(left->name, right->name);
}

static double key_of(const struct statistics_row *row, enum operations_order order)
{
    switch (order) {
    case OPERATIONS_BY_P99:
        return (double)histogram_quantile(&row->duration, 0.99);
    case OPERATIONS_BY_SELF:
        return row->self.sum;
    case OPERATIONS_BY_ERRORS:
        return (double)row->errors;
    default:
        return (double)row->spans;
    }
}

struct operation *operations(const struct statistics *statistics, enum statistics_kind kind,
                             enum operations_order order, const char *glob, size_t *count)
{
    const struct names *names = statistics_names(statistics);
    const size_t all = statistics_size(statistics, kind);
    struct operation *found = calloc(all + 1, sizeof(*found));

    *count = 0;
    if (!found)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        const struct statistics_row *row = statistics_at(statistics, kind, i);
        const char *service = names_text(names, row->service).data;
        const char *name = names_text(names, row->name).data;

        if (row->spans + (kind == STATISTICS_ROWS ? row->duration.count + row->self.count : 0) &&
            (!glob || statistics_is_other(row) || fnmatch(glob, service, 0) == 0 ||
             (kind == STATISTICS_EDGES && fnmatch(glob, name, 0) == 0)))
            found[(*count)++] = (struct operation){row, service, name, key_of(row, order)};
    }
    qsort(found, *count, sizeof(*found), by_key);
    return found;
}

bool operations_sum(const struct operation *operations, size_t count, struct statistics_row *sum)
{
    for (size_t i = 0; i < count; i++) {
        sum->spans += operations[i].row->spans;
        sum->errors += operations[i].row->errors;
        if (!histogram_merge(&sum->duration, &operations[i].row->duration) ||
            !histogram_merge(&sum->self, &operations[i].row->self))
            return false;
    }
    return true;
}
