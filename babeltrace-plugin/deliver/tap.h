/*
 * The tap: a Unix socket that shows the delivered spans to each reader that connects.
 *
 * A reader gets one line for each batch, see doc/sink.md. A sender copies the batch for each reader
 * and goes on; the tap's own thread writes to the sockets. A slow reader misses whole batches, and
 * the next line tells it how many spans. Without readers, a batch costs one load of a counter.
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

/* Any thread may call the next three functions. */

/* Is there a reader? */
bool tap_is_read(struct tap *tap);

/* Shows a body that is not framed, and whose spans begin with {"traceId":" as in zipkin_json.c. */
void tap_show(struct tap *tap, const struct encoder *encoder, const struct body *body);

/* Counts so many spans that are not shown: there is no reader, or no memory to encode them. */
void tap_pass(struct tap *tap, uint32_t spans);

/* The sum over all readers of the spans that a reader wanted and did not get. */
uint64_t tap_dropped(struct tap *tap);

/*
 * Ends the tap. Readers have 0.1 s to read the rest, and up to 1 s as long as they go on reading.
 */
void tap_end(struct tap *tap);

/* NULL is allowed. */
void tap_free(struct tap *tap);

#endif
