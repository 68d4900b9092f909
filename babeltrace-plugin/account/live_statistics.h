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
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_LIVE_STATISTICS_H
#define BLKIN_ACCOUNT_LIVE_STATISTICS_H

#include "babeltrace-plugin/spans/span.h"

struct live_statistics;

/* Returns NULL when out of memory. */
struct live_statistics *live_statistics_new(void);
void live_statistics_free(struct live_statistics *statistics); /* NULL is allowed */

void live_statistics_add(struct live_statistics *statistics, const struct span *span);

/* Closes complete traces. Returns false if the statistics must begin again, for lack of memory. */
bool live_statistics_advance(struct live_statistics *statistics, int64_t now_ms);

/* Closes all traces: no further spans come. */
void live_statistics_close_traces(struct live_statistics *statistics);

/*
 * Returns the document of tools/merged/merged.h, without workers, for free(), and with
 *
 *     "source": "4711-1700000000000000000"   one start of one process
 *     "traces": 7, "traces_early": 0, "traces_open": 2
 *
 * early: closed to make room. Returns NULL when out of memory.
 */
char *live_statistics_text(const struct live_statistics *statistics);

#endif
