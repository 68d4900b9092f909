/*
 * Spans of OpenTelemetry's SDKs (tools/otlp) for the traces that are fetched. An SDK sends its
 * spans up to some seconds after their ends: so a trace is looked at for a while after it was
 * fetched, and what came later is fetched, too.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LATER_H
#define BLKIN_TOOLS_LATER_H

#include "agent.h"
#include "babeltrace-plugin/base/buffer.h"
#include "tools/otlp/otlp_in.h"

struct later;

/* add: a request for what has come later, which is taken. Returns NULL when out of memory. */
struct later *later_new(struct agent *agent, const struct otlp_in *foreign,
                        void (*add)(void *context, struct request *request), void *context);
void later_free(struct later *later); /* NULL is allowed */

/*
 * Appends what is wanted, and was not given before, to an ExportTraceServiceRequest of OTLP. What
 * there is no memory for is lost, and counted.
 */
void later_take(struct later *later, const struct request *requests, int64_t offset_ns,
                struct buffer *message);

/* What these requests were given last has come to nothing: it is given again. */
void later_take_back(struct later *later, const struct request *requests);

/* Since 1970: of traces that began later, no foreign span was overwritten, or lost with an earlier
 * process. later_take() notes it of each trace that has foreign spans: see fetched.h. */
int64_t later_held_from(const struct later *later);

/* Looks whether something has come. Returns when to look again, in ms of clock_ms(). */
int64_t later_look(struct later *later);

#endif
