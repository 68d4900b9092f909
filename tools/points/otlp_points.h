/*
 * What hosts did between samples, as OTLP metrics: a request of type ExportMetricsServiceRequest of
 * delta temporality.
 *
 *     resource: host.name
 *     NAME of a counter   sum, monotonic, delta     from the sample before (start) to this one
 *     NAME of a gauge     gauge                     what it was from start on
 *     a data point's attributes: what else it is of, and which instance
 *
 * NAME, unit and attributes are OpenTelemetry's where it has them (otlp_names.h), time is in
 * seconds; inside, points have keys and ns. What OpenTelemetry has as an UpDownCounter is a gauge
 * here, as a sum would have to go on from the message before.
 *
 * Each message stands by itself, so that whoever reads it needs no other one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_POINTS_H
#define BLKIN_OUTPUT_OTLP_POINTS_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/hosts/fleet.h"

/* What a message has at most; in one of more bytes is what fits. */
#define OTLP_POINTS_BYTES 900000U

/*
 * All of one host. Sorts them: those of a metric are beside each other. Returns how many are in it,
 * and 0 when out of memory; the others are for another message.
 */
size_t otlp_points_write(struct text host, struct fleet_point *points, size_t count,
                         struct buffer *buffer);

struct otlp_points_read {
    uint64_t points;
    uint64_t refused; /* cumulative, or without numbers */
    bool is_broken;   /* no such request: what is behind the fault was not read */
};

typedef void otlp_point_fn(void *context, const struct fleet_point *point);

/* Any bytes, written by anyone. */
struct otlp_points_read otlp_points_read(struct text request, otlp_point_fn *call, void *context);

#endif
