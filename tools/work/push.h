/*
 * What all workers have counted, to a collector of OpenTelemetry's: cumulative metrics, so that a
 * request that has failed is no loss.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PUSH_H
#define BLKIN_TOOLS_WORK_PUSH_H

#include "tools/base/loop.h"
#include "tools/config/config.h"
#include "tools/merged/merged.h"

struct push;

/* Sends by itself from now on, what merged has at that time; the URL is the key otlp-metrics.
 * Returns NULL with error set. */
struct push *push_open(struct loop *loop, const struct config *config, const struct merged *merged,
                       struct error *error);

/* Waits for the round that is under way. NULL is allowed. */
void push_close(struct push *push);

/* Adds what came of it to the status of the service. */
void push_status(const struct push *push, json_t *status);

#endif
