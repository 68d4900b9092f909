/*
 * The metrics of hosts as OTLP: an ExportMetricsServiceRequest with delta temporality.
 *
 *     resource: host.name
 *     NAME of a counter   sum, monotonic, delta     from the sample before (start) to this one
 *     NAME of a gauge     gauge                     its value since start
 *     attributes of a data point: the instance, such as a disk, and what OpenTelemetry's name needs
 *
 * Messages have OpenTelemetry's names, units and attributes where there are such (otlp_names.h),
 * and durations in seconds; in memory, points have our keys, and ns. OpenTelemetry's UpDownCounters
 * are gauges here, as a sum would have to continue the one in the message before.
 *
 * A reader of a message needs no other message.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_POINTS_H
#define BLKIN_OUTPUT_OTLP_POINTS_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/hosts/fleet.h"

/* The limit of a message. */
#define OTLP_POINTS_BYTES 900000U

/*
 * Writes a message with points of one host, and sorts the points by metric for that. Returns how
 * many points fit into the message, which are the first ones; 0 when out of memory.
 */
size_t otlp_points_write(struct text host, struct fleet_point *points, size_t count,
                         struct buffer *buffer);

struct otlp_points_read {
    uint64_t points;
    uint64_t refused; /* cumulative, or without numbers */
    bool is_broken;   /* no such request: reading stopped at the fault */
};

typedef void otlp_point_fn(void *context, const struct fleet_point *point);

/* Reads a message, which may be any bytes. */
struct otlp_points_read otlp_points_read(struct text request, otlp_point_fn *call, void *context);

#endif
