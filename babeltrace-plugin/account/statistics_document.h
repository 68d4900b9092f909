/*
 * Statistics as JSON: the members "spans", "errors", "rows" and "edges" of a document. What they
 * are says tools/merged/merged.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_STATISTICS_DOCUMENT_H
#define BLKIN_ACCOUNT_STATISTICS_DOCUMENT_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/model/statistics.h"

#include <jansson.h>

/* How the arrays of rows and edges, and their members, are called. */
struct statistics_array {
    const char *array, *first, *second, *count;
};
extern const struct statistics_array statistics_arrays[STATISTICS_KINDS];

/* Prints ,"spans":...,"errors":...,"rows":[...],"edges":[...]; or one row or edge. */
void statistics_print(struct printer *printer, const struct statistics *statistics);
void statistics_print_row(struct printer *printer, const struct statistics *statistics,
                          enum statistics_kind kind, size_t i);

/*
 * Anybody may have written what was added up. A reader of JSON takes no integer above 2^63 - 1 and
 * no number that is not finite: one of them would make the whole document unreadable. So this
 * prints a smaller one. before: what stands before the value, such as ",\"spans\":".
 */
void statistics_print_count(struct printer *printer, const char *before, uint64_t count);

/* Any JSON; 0: there is no such count. */
uint64_t statistics_count_at(const json_t *object, const char *key);

enum statistics_change { STATISTICS_ADD, STATISTICS_REMOVE };

/*
 * Adds the document's rows and edges, or removes those of an earlier document of the same source.
 * Any JSON; its "scale" is 0 to 20. Returns false with error set; a part may be changed then.
 * statistics and names NULL: the document is only looked at.
 */
bool statistics_read(struct statistics *statistics, struct names *names, const json_t *document,
                     enum statistics_change change, struct error *error);

#endif
