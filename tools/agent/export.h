/*
 * The agent's export: one exporter with its spool, which all pipelines of the agent share, and the
 * counts of their spans.
 *
 * The saved state marks a trace as unsent (collected.h) until its spans are settled: accepted by
 * the collector, stored in the spool, or counted as lost. Before that, a kill would lose the spans.
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
    /* Called once, when the exporter has failed for good. */
    void (*failed)(void *context);
    /* Called when more spans are settled: see export_settled(). Also called every 10 s while none
     * waits: all that was read may be sampled out. */
    void (*settled)(void *context);
    void *context;
};

/* Opens the exporter as the configuration says. Without the key spool, the folder of the spool is
 * "spool" in state-dir; an endpoint that is a file has no spool. last: the file of the last run,
 * see export_close(); NULL: none. Returns NULL with error set. */
struct export *export_open(struct loop *loop, const struct config *config, const json_t *last,
                           const struct export_calls *calls, struct error *error);

/* Returns true if the exporter runs with the same configuration. */
bool export_is_same(const struct export *export, const struct config *config);

/* Changes the configuration. Unless export_is_same(), no pipeline may be open: the old exporter
 * delivers for at most flush-timeout-ms. Returns false with error set: then the old configuration
 * is used or, if that fails too, failed() was called. */
bool export_change(struct export *export, const struct config *config, struct error *error);

/* Delivers for at most flush-timeout-ms, and adds the counts to the totals. No pipeline may be
 * open. Returns false, after a message, if the exporter has failed or spans may be lost. *file: the
 * complete file that the next run may continue; NULL: none. */
bool export_close(struct export *export, struct counts *totals, json_t **file);

/* Opens a pipeline whose spans go to the exporter. The caller has set at most `choice`,
 * `wall_clock_ns`, `resumed_ns` and `marks`. Returns false with error set: then the caller calls
 * export_close_pipeline(), too. */
bool export_open_pipeline(struct export *export, struct pipeline *pipeline, struct error *error);
/* Ends and closes the pipeline, and adds its counts. */
void export_close_pipeline(struct export *export, struct pipeline *pipeline);

/* Gives a span of an SDK to a pipeline. Decodes the span into `whole`, which the next call may use
 * again; the caller frees whole->log at the end. Counts a span that cannot be read. */
void export_take_sdk_span(struct pipeline *pipeline, struct span *whole,
                          const struct otlp_origin *origin, const struct otlp_span *span);

/* Exports a span of the agent's own service, "blkin-agent". The export sets the endpoint. Does
 * nothing when out of memory, or if the exporter has failed. */
void export_add_own(struct export *export, struct span *span);

/* Returns the number of spans that were given to exporters since export_open(). */
uint64_t export_given(struct export *export);
/* Returns the number of these spans that are settled. All spans before the first unsettled span
 * count. */
uint64_t export_settled(struct export *export);

/* See exporter_note_pause(). */
void export_note_pause(struct export *export, int64_t pause_ms);

/* Returns false if the exporter has failed for good. The first time, logs a message and calls
 * failed(). */
bool export_check(struct export *export);

/* Returns the folder of the spool; "": none. */
const char *export_spool(const struct export *export);
/* Returns "file:PATH" with the path in use; "": the endpoint is no file. */
const char *export_file(const struct export *export);

/* Adds the counts since export_open() to the totals of earlier runs. is_handed_over: the totals go
 * into a file, and the next run continues with them: see counts_hand_over(). */
void export_add_account(struct export *export, struct counts *totals, bool is_handed_over);
json_t *export_statistics(struct export *export); /* see pipeline_statistics(); NULL: none */

#endif
