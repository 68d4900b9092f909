/*
 * What a worker has added up of hosts since its last transaction, as OTLP metrics (a request of
 * type ExportMetricsServiceRequest of delta temporality), beside its other deltas: resource as in
 * deltas.h, data points with the attributes hosts (the group), metric and instance.
 *
 *     blkin.hosts.samples             sum; with the attributes unit and kind (counter, gauge), too
 *     blkin.hosts.increase            sum, of counters
 *     blkin.hosts.window.hosts        sums of a window of time: start and time of the data point
 *     blkin.hosts.window.elapsed      ns
 *     blkin.hosts.window.increase     of counters
 *     blkin.hosts.window.integral     of gauges: value x ns
 *     blkin.hosts.window.min, .max    gauges
 *     blkin.hosts.window.delay        gauge, ns
 *
 * Cumulative, for a collector, it has samples and increase, of the window that is shown the gauges
 * blkin.hosts.window.hosts, .average, .sum, .min and .max (of a counter by second), and unit and
 * kind with each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_FLEET_DELTAS_H
#define BLKIN_TOOLS_WORK_FLEET_DELTAS_H

#include "babeltrace-plugin/hosts/fleet.h"
#include "deltas.h"

/* As deltas_write(); no message if there is nothing. */
bool fleet_deltas_write(const struct deltas_head *head, const struct fleet *fleet,
                        struct buffer *buffer, otlp_metrics_emit_fn *emit, void *context);

/*
 * Adds what a message has of hosts: one that deltas_read() has taken, so that it is whole. Windows
 * to come after now_ns are left out. Returns false when out of memory.
 */
bool fleet_deltas_read(const char *data, size_t length, struct fleet *fleet, int64_t now_ns);

/*
 * A counter over all hosts. The idle time of a thousand hosts, in ns, passes 2^63 in some days, and
 * neither a reader of JSON nor OTLP takes more: so the sum begins at 0 again, which every back end
 * takes for a restart.
 */
static inline uint64_t fleet_increase_sum(uint64_t sum, uint64_t more)
{
    return (sum + more) & INT64_MAX;
}

/* A window in which nothing was seen. */
#define FLEET_WINDOW_EMPTY ((struct fleet_window){.min = INFINITY, .max = -INFINITY})

/* Adds what somebody has seen of the window of this number: any values. */
void fleet_window_merge(struct fleet_row *row, int64_t number, const struct fleet_window *part);

#endif
