/*
 * Statistics as JSON: the members "spans", "errors", "rows" and "edges" of a document, which
 * tools/merged/merged.h describes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_STATISTICS_DOCUMENT_H
#define BLKIN_ACCOUNT_STATISTICS_DOCUMENT_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/spans/span.h"

#include <jansson.h>

/* The names of the arrays of rows and edges, and of their members. */
struct statistics_array {
    const char *array, *first, *second, *count;
};
extern const struct statistics_array statistics_arrays[STATISTICS_KINDS];

/* Prints ,"spans":...,"errors":...,"rows":[...],"edges":[...]; or one row or edge. */
void statistics_print(struct printer *printer, const struct statistics *statistics);
void statistics_print_row(struct printer *printer, const struct statistics *statistics,
                          enum statistics_kind kind, size_t i);

/*
 * Prints a count after `before`, such as ",\"spans\":". A JSON reader accepts no integer above 2^63
 * - 1 and no infinite number: such a number would make the document unreadable. Sums of untrusted
 * documents may be larger: such a count loses its highest bit.
 */
void statistics_print_count(struct printer *printer, const char *before, uint64_t count);

/* Reads a count of any JSON; 0: no such count. */
uint64_t statistics_count_at(const json_t *object, const char *key);

enum statistics_change { STATISTICS_ADD, STATISTICS_REMOVE };

/*
 * Adds the document's rows and edges, or removes those of an earlier document of the same source.
 * Any JSON is safe; a "scale" that is not 0 to 20 is refused. Returns false with error set; a part
 * may have been added. statistics and names NULL: only checks the document.
 */
bool statistics_read(struct statistics *statistics, struct names *names, const json_t *document,
                     enum statistics_change change, struct error *error);

/* ---- statistics on demand -------------------------------------------------------------------- */

/*
 * Statistics of the spans that a pipeline gives to its exporter, for `blkin stat`. The pipeline
 * computes them only while a client asks.
 *
 * A span counts at once. Its self time and its calls count when its trace is complete: 2 s after
 * the trace's last span. All counts grow: a client subtracts the earlier counts.
 *
 * The memory is bounded. Incomplete traces take 64 MiB at most, with 10,000 spans each. Names take
 * 16 MiB, and further names count in one row. With histograms of more than 64 MiB, the statistics
 * begin again.
 */
struct live_statistics;

/* Returns NULL when out of memory. */
struct live_statistics *live_statistics_new(void);
void live_statistics_free(struct live_statistics *statistics); /* NULL is allowed */

void live_statistics_add(struct live_statistics *statistics, const struct span *span);

/* Closes complete traces. Returns false if the statistics must begin again, for lack of memory. */
bool live_statistics_advance(struct live_statistics *statistics, int64_t now_ms);

/* Closes all traces: no further span will arrive. */
void live_statistics_close_traces(struct live_statistics *statistics);

/*
 * Returns a document, which the caller frees; NULL when out of memory. The document has the members
 * of tools/merged/merged.h that are not about workers, and:
 *
 *     "source": "4711-1700000000000000000"   one start of one process
 *     "traces": 7, "traces_early": 0, "traces_open": 2   early: closed to make room
 */
char *live_statistics_text(const struct live_statistics *statistics);

#endif
