/*
 * Late spans: spans that are recorded after their trace was collected, such as a write that goes on
 * after the answer. An SDK of OpenTelemetry (tools/otlp) sends a span some seconds after its end.
 *
 * This part watches each collected trace for 15 s. It requests the spans of SDKs that have come.
 * In that time, it also has the rings read again, twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LATE_SPANS_H
#define BLKIN_TOOLS_LATE_SPANS_H

#include "agent.h"
#include "babeltrace-plugin/base/buffer.h"
#include "tools/otlp/otlp_in.h"

struct late_spans;

/* Watches the traces that an earlier process has collected in the last 15 s. Returns NULL when out
 * of memory. */
struct late_spans *late_spans_new(struct agent *agent);
void late_spans_free(struct late_spans *late_spans); /* NULL is allowed */

/*
 * Begins to watch the named traces. Appends the wanted spans of SDKs to an
 * ExportTraceServiceRequest of OTLP: of named traces only those that were not given before.
 * offset_ns: CLOCK_REALTIME less CLOCK_MONOTONIC, for windows. Drops and counts spans for which
 * there is no memory, or that would make the message larger than 256 MiB.
 */
void late_spans_take(struct late_spans *late_spans, const struct request *requests,
                     int64_t offset_ns, struct buffer *message);

/* Returns true if the last late_spans_take() gave spans of SDKs of the trace. */
bool late_spans_taken(const struct late_spans *late_spans, struct trace_id id);

/* After a failure, marks the spans that the last late_spans_take() gave for these requests as not
 * given. */
void late_spans_take_back(struct late_spans *late_spans, const struct request *requests);

/* Returns the time of CLOCK_MONOTONIC from which all spans of SDKs are held: none was
 * overwritten, or lost by a restart. INT64_MIN: no SDK sends spans here. */
int64_t late_spans_held_from(const struct late_spans *late_spans);

/* Checks for late spans. Returns the time of the next check, in ms of clock_ms(). */
int64_t late_spans_look(struct late_spans *late_spans);

#endif
