/*
 * Statistics of the spans that a pipeline hands to its exporter, for `blkin stat`. The pipeline
 * makes them only while somebody asks for them.
 *
 * A span counts at once, its self time and its calls when its trace is complete: 2 s after its last
 * span. All counts go up: a reader subtracts what it was told before.
 *
 * The memory is bounded: traces that are not complete take 64 MiB at most, and have 10,000 spans
 * each; names take 16 MiB, and what has other names counts in one row. With histograms of more than
 * 64 MiB, the statistics begin again.
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

/* Closes traces that are complete by now. Returns false if the statistics have to begin again, for
 * want of memory. */
bool live_statistics_advance(struct live_statistics *statistics, int64_t now_ms);

/* Closes all traces: no more spans come. */
void live_statistics_close_traces(struct live_statistics *statistics);

/*
 * The document, for free(): that of tools/merged/merged.h, without workers, and with
 *
 *     "source": "4711-1700000000000000000"   one beginning of one process
 *     "traces": 7, "traces_early": 0, "traces_open": 2
 *
 * early: closed to make room. Returns NULL when out of memory.
 */
char *live_statistics_text(const struct live_statistics *statistics);

#endif
