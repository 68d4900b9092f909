/*
 * The span that tells of an incomplete trace, in the trace itself: service "blkin-agent", name
 * "incomplete". Sent by a child, with the exporter of the sink, as the configuration has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_INCOMPLETE_H
#define BLKIN_TOOLS_INCOMPLETE_H

#include "agent.h"
#include "ledger.h"
#include "tools/base/child.h"

extern const struct job incomplete_job;

struct incomplete;

/* told: the span of this trace is delivered. Returns NULL when out of memory. */
struct incomplete *incomplete_new(const struct agent *agent,
                                  void (*told)(void *context, struct trace_id id), void *context);
void incomplete_free(struct incomplete *incomplete); /* NULL is allowed */

/* Copies it. Returns false if too many wait: then nobody is told. */
bool incomplete_add(struct incomplete *incomplete, const struct verdict *verdict);

/* How many wait. */
size_t incomplete_count(const struct incomplete *incomplete);
/* A child runs. */
bool incomplete_is_running(const struct incomplete *incomplete);

/* Ends the child: what is not delivered within flush-timeout-ms is not. */
void incomplete_stop(struct incomplete *incomplete);

#endif
