/*
 * Spans of OpenTelemetry's SDKs (tools/otlp) for collected traces. An SDK sends a span some seconds
 * after the span's end. So this part watches collected traces for a while, and requests late spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LATE_SPANS_H
#define BLKIN_TOOLS_LATE_SPANS_H

#include "agent.h"
#include "babeltrace-plugin/base/buffer.h"
#include "tools/otlp/otlp_in.h"

struct late_spans;

/* Reads agent->otlp. Returns NULL when out of memory. */
struct late_spans *late_spans_new(struct agent *agent);
void late_spans_free(struct late_spans *late_spans); /* NULL is allowed */

/*
 * Appends the wanted spans to an ExportTraceServiceRequest of OTLP: of named traces only those that
 * were not given before. offset_ns: CLOCK_REALTIME less CLOCK_MONOTONIC, for windows.
 * Drops and counts spans for which there is no memory, or that would make the message larger than
 * 256 MiB.
 */
void late_spans_take(struct late_spans *late_spans, const struct request *requests,
                     int64_t offset_ns, struct buffer *message);

/* After a failure, marks the spans that the last late_spans_take() gave for these requests as not
 * given. */
void late_spans_take_back(struct late_spans *late_spans, const struct request *requests);

/* Returns the time of CLOCK_MONOTONIC from which on all spans of SDKs are held: none was
 * overwritten, or lost by a restart. */
int64_t late_spans_held_from(const struct late_spans *late_spans);

/* Checks for late spans. Returns the time of the next check, in ms of clock_ms(). */
int64_t late_spans_look(struct late_spans *late_spans);

#endif
