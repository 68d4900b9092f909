/*
 * Spans of OpenTelemetry's SDKs (tools/otlp) for fetched traces. An SDK sends a span some seconds
 * after the span's end. So this part watches fetched traces for a while, and requests late spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LATER_H
#define BLKIN_TOOLS_LATER_H

#include "agent.h"
#include "babeltrace-plugin/base/buffer.h"
#include "tools/otlp/otlp_in.h"

struct later;

/* add: gets the requests for late spans, and frees them. Returns NULL when out of memory. */
struct later *later_new(struct agent *agent, const struct otlp_in *otlp,
                        void (*add)(void *context, struct request *request), void *context);
void later_free(struct later *later); /* NULL is allowed */

/*
 * Appends the wanted spans that were not given before to an ExportTraceServiceRequest of OTLP.
 * Drops and counts spans for which there is no memory.
 */
void later_take(struct later *later, const struct request *requests, int64_t offset_ns,
                struct buffer *message);

/* After a failure, marks the spans of the last later_take() of these requests as not given. */
void later_take_back(struct later *later, const struct request *requests);

/* Returns the time since 1970 from which on all spans of SDKs are held: none was overwritten, or
 * lost by a restart. */
int64_t later_held_from(const struct later *later);

/* Checks for late spans. Returns the time of the next check, in ms of clock_ms(). */
int64_t later_look(struct later *later);

#endif
