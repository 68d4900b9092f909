/*
 * Feeds the records of a scan to a pipeline, in steps between which the loop does other work.
 * Reports which spans of the wanted traces were found.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FEED_H
#define BLKIN_TOOLS_FEED_H

#include "export.h"
#include "halves.h"
#include "scan.h"

/* The most traces of a window that an answer names. */
#define FEED_NAMED_MAX 4096

struct feed;

/* found: {"traces": [...], ...}, see only.h; NULL: the pipeline could not be opened, or memory ran
 * out. For a service: {"traces": [{"id": ..., "spans": n, ...}]}. Called from the loop. */
typedef void feed_done_fn(void *context, json_t *found);

/* Sets the place of a trace that is sent under another id: see joins_find(). */
typedef bool feed_place_fn(void *context, struct trace_id id, struct join_place *place);

/* host: outlives the feed. Returns NULL when out of memory. */
struct feed *feed_new(struct loop *loop, struct export *export, const char *host,
                      feed_done_fn *done, feed_place_fn *place, void *context);
void feed_free(struct feed *feed); /* NULL is allowed */

struct feed_input {
    struct scan_records records;
    struct buffer sdk_spans;        /* an ExportTraceServiceRequest of OTLP; may be empty */
    const struct scan_order *order; /* of the scan; outlives the feeding */
    struct halves *halves;          /* not NULL: send nothing, and add the halves of requests */
    const char *service;            /* not "": send nothing, and list the traces of this service */
};

/* Takes the records and the spans of SDKs. No other input is being fed. */
void feed_start(struct feed *feed, struct feed_input *input);

/* Feeds all that is left at once. */
void feed_hurry(struct feed *feed);

#endif
