/*
 * The tap: a Unix socket on which who connects is shown the spans that are being delivered.
 *
 * A line for each batch, see doc/sink.md. Who delivers it copies the batch for each reader and goes
 * on; a thread of the tap's own does the rest. A reader that does not keep up misses whole
 * batches, and is told of how many spans. Without readers a batch costs one look.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_TAP_H
#define BLKIN_OUTPUT_TAP_H

#include "babeltrace-plugin/base/error.h"
#include "body.h"

#define TAP_READERS 8

struct tap;

/* Returns NULL with error set. */
struct tap *tap_open(const char *path, struct error *error);

/* These three from any thread. */

/* Is anybody there to be shown something? */
bool tap_is_read(struct tap *tap);

/* The body is not framed; its spans begin with {"traceId":" as of zipkin_json.c. */
void tap_show(struct tap *tap, const struct encoder *encoder, const struct body *body);

/* So many spans pass without being shown: nobody reads, or there is no memory to encode them. */
void tap_pass(struct tap *tap, uint32_t spans);

/* Spans that a reader was not shown, of those that it wanted; summed up over the readers. */
uint64_t tap_dropped(struct tap *tap);

/*
 * No more will be shown. Readers have a tenth of a second for the rest, and up to a second while
 * they take some of it: then it is dropped.
 */
void tap_end(struct tap *tap);

/* NULL is allowed. */
void tap_free(struct tap *tap);

#endif
