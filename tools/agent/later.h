/*
 * Spans of OpenTelemetry's SDKs (tools/otlp) for the traces that are fetched. An SDK sends spans
 * some seconds after their ends. So this part watches fetched traces for a while, and requests late
 * spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LATER_H
#define BLKIN_TOOLS_LATER_H

#include "agent.h"
#include "babeltrace-plugin/base/buffer.h"
#include "tools/otlp/otlp_in.h"

struct later;

/* add: takes a request for late spans. Returns NULL when out of memory. */
struct later *later_new(struct agent *agent, const struct otlp_in *otlp,
                        void (*add)(void *context, struct request *request), void *context);
void later_free(struct later *later); /* NULL is allowed */

/*
 * Appends wanted spans that were not given before to an ExportTraceServiceRequest of OTLP. Spans
 * for which there is no memory are lost, and counted.
 */
void later_take(struct later *later, const struct request *requests, int64_t offset_ns,
                struct buffer *message);

/* Marks the spans that these requests got last as not given, after a failure. */
void later_take_back(struct later *later, const struct request *requests);

/* CLOCK_MONOTONIC: from then on no span of an SDK was overwritten or lost by a restart.
 * For later_take(), which stores this time: see fetched.h. */
int64_t later_held_from(const struct later *later);

/* Checks for late spans. Returns the time of the next check, in ms of clock_ms(). */
int64_t later_look(struct later *later);

#endif
