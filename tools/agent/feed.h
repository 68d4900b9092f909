/*
 * Feeds the records of a scan to a pipeline. Between the steps, the loop does other work. Reports
 * which spans of the wanted traces were found.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FEED_H
#define BLKIN_TOOLS_FEED_H

#include "export.h"
#include "joins.h"
#include "scan.h"

/* The most traces of a window that an answer lists. */
#define FEED_NAMED_MAX 4096

struct feed;

/* Called once for each input: by the loop, by feed_hurry(), or by feed_start() if that fails. Takes
 * `found`: see selection.h. With `halves`, `found` is {}. For a service, "have" and "want" of
 * `found` are empty. NULL: the pipeline could not be opened, or memory ran out. */
typedef void feed_done_fn(void *context, json_t *found);

/* joins: knows the places of traces. Pointers must outlive the feed. Returns NULL when out of
 * memory. */
struct feed *feed_new(struct loop *loop, struct export *export, const char *host,
                      const struct joins *joins, feed_done_fn *done, void *context);
void feed_free(struct feed *feed); /* NULL is allowed */

struct feed_input {
    struct scan_records records;
    struct buffer sdk_spans;        /* an ExportTraceServiceRequest of OTLP; may be empty */
    const struct scan_order *order; /* of the scan; must live until done(), as `service` */
    struct halves *halves;          /* not NULL: send nothing, and add the halves of requests */
    const char *service;            /* not "": send nothing, and list the traces of this service */
};

/* Takes the records and the spans of SDKs. done() must have been called for an earlier input. */
void feed_start(struct feed *feed, struct feed_input *input);

/* Feeds the remaining input at once. */
void feed_hurry(struct feed *feed);

#endif
