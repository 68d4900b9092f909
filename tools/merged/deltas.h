/*
 * What a worker has counted since its last transaction, as OTLP metrics (otlp_metrics.h) of delta
 * temporality: `blkin work --root` adds such messages up, and so does any back end of
 * OpenTelemetry's.
 *
 *     blkin.span.calls, .errors          sums;       attributes service.name, span.name
 *     blkin.span.duration, .self_time    exponential histograms, ns; the same attributes
 *     blkin.edge.calls, .errors          sums;       attributes client, server
 *     blkin.edge.duration                exponential histogram, ns
 *     blkin.work.*                       sums and gauges, see counts.h
 *
 * Calls are all spans; a histogram has those whose duration is known. Rows without calls in the
 * period are left out. What does not fit into one message is in several, of one transaction; the
 * first has the worker's own counters, in the others they are 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_DELTAS_H
#define BLKIN_TOOLS_WORK_DELTAS_H

#include "babeltrace-plugin/model/statistics.h"
#include "counts.h"
#include "otlp_metrics.h"

#define DELTAS_NAME_MAX OTLP_METRICS_NAME_MAX

struct deltas_head {
    char instance[DELTAS_NAME_MAX]; /* of the worker */
    char group[DELTAS_NAME_MAX];
    int64_t start_ns; /* of the period, since 1970 */
    int64_t end_ns;
    struct work_counts counts; /* counters: of this period; gauges: at its end */
    bool has_counts;           /* read: this message has them */
};

/*
 * Calls emit for each message, one at least. buffer is for the bytes, and keeps its memory for the
 * next time. Returns false when out of memory, or when emit has.
 */
bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  struct buffer *buffer, otlp_metrics_emit_fn *emit, void *context);

/*
 * Adds a message to the statistics (of these names), and tells the rest in head. What does not
 * belong to it, of other writers, is skipped. Returns false with error set, and nothing was added,
 * if it is not such a message; or when out of memory: then a part may have been.
 */
bool deltas_read(const char *data, size_t length, struct deltas_head *head,
                 struct statistics *statistics, struct names *names, struct error *error);

#endif
