/*
 * The agent's export: one exporter with its spool, which all pipelines of the agent share, and the
 * account of their spans.
 *
 * Spans of a trace that are given to the exporter are still in memory: a kill loses them. So the
 * saved state has such a trace as not sent (fetched.h) until its spans are settled: accepted by the
 * collector, stored in the spool, or counted as lost.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_EXPORT_H
#define BLKIN_TOOLS_AGENT_EXPORT_H

#include "babeltrace-plugin/pipeline.h"
#include "tools/config/config.h"

#include <jansson.h>

struct loop;
struct otlp_origin;
struct otlp_span;
struct export;

struct export_calls {
    /* The exporter has failed for good. */
    void (*failed)(void *context);
    /* More spans are settled: see export_settled(). */
    void (*settled)(void *context);
    void *context;
};

/* Opens the exporter as the configuration says. Without the key spool, the folder of the spool is
 * "spool" in state-dir. Returns NULL with error set. */
struct export *export_open(struct loop *loop, const struct config *config,
                           const struct export_calls *calls, struct error *error);

/* True if the exporter runs, and this configuration would open it in the same way. */
bool export_is_same(const struct export *export, const struct config *config);

/* Uses another configuration from now on. If that opens the exporter again, no pipeline is open:
 * the old one delivers within flush-timeout-ms. Returns false with error set: then the export uses
 * the old configuration again. */
bool export_change(struct export *export, const struct config *config, struct error *error);

/* Delivers within flush-timeout-ms, and adds the account to the totals. No pipeline may be open.
 * Returns false, after a message, if nothing could be delivered at all, or the disk has not stored
 * spans of the spool. */
bool export_close(struct export *export, struct counts *totals);

/* Opens a pipeline, all zero except `choice` and its clock, whose spans go to the exporter. Returns
 * false with error set: then the caller calls pipeline_close(), too. */
bool export_open_pipeline(struct export *export, struct pipeline *pipeline, struct error *error);
/* Ends and closes the pipeline, and adds its counts to the account. */
void export_close_pipeline(struct export *export, struct pipeline *pipeline);

/* Gives a span of an SDK to a pipeline. whole: memory that is used again; the caller frees the log.
 * A span that cannot be read is counted. */
void export_take_sdk_span(struct pipeline *pipeline, struct span *whole,
                          const struct otlp_origin *origin, const struct otlp_span *span);

/* Exports a span of the agent's own service, "blkin-agent". The export sets the endpoint. */
void export_add_own(struct export *export, struct span *span);

/* The numbers of spans that were given to exporters since export_open(), and of the first of these
 * that are settled. */
uint64_t export_given(struct export *export);
uint64_t export_settled(struct export *export);

/* Checks the exporter. If it has failed for good, logs a message and calls calls.failed(). */
bool export_go_on(struct export *export);

/* Adds the account since export_open() to the totals of earlier runs. is_handed_over: for a file
 * from which the next run goes on, see counts_hand_over(). */
void export_add_account(struct export *export, struct counts *totals, bool is_handed_over);
json_t *export_statistics(struct export *export); /* see pipeline_statistics(); NULL: none */

#endif
