/*
 * Where kept traces go: to a topic of the same cluster, as they came and in the worker's own
 * transactions; or by the sink's exporter, outside of these: then at least once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_KEEPER_H
#define BLKIN_TOOLS_WORK_KEEPER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "partition.h"

#define KEPT_MESSAGE_MAX 900000U

/* Takes a request of OTLP traces, of the partition's index; the bytes are the caller's. Returns
 * false if it cannot. */
typedef bool keeper_emit_fn(void *context, uint32_t partition, const char *data, size_t length);

struct keeper;

/* For a topic of that many partitions. Returns NULL when out of memory. */
struct keeper *keeper_new_topic(uint32_t partitions, keeper_emit_fn *emit, void *context);

/* For an exporter of these options. Returns NULL with error set. */
struct keeper *keeper_new_exporter(const struct exporter_options *options,
                                   const struct exporter_callbacks *callbacks, struct error *error);

/* Returns false if a message could not be emitted, or when out of memory. What no message takes is
 * counted. */
bool keeper_add(struct keeper *keeper, const struct held_trace *trace, struct work_counts *counts);

/*
 * All that was added is emitted, or with an exporter: delivered, in its spool, or given up and
 * counted there. Returns false with error set if that is not so.
 */
bool keeper_flush(struct keeper *keeper, struct error *error);

/* Of an exporter; false: it has none. */
bool keeper_exporter_counts(struct keeper *keeper, struct exporter_counts *counts);

/* NULL is allowed. */
void keeper_free(struct keeper *keeper);

#endif
