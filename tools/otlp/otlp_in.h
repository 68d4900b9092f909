/*
 * Receives spans of any OpenTelemetry SDK: OTLP over HTTP with protobuf, on TCP and at a Unix
 * socket. Holds the newest spans in memory, and gives an alarm for each slow or failed span. Gives
 * the spans of wanted traces unchanged, with their resources and scopes.
 *
 * Each sender (otlp_peers.h) has a share of connections, of memory and of alarms. A sender that
 * exceeds its share is refused; the other senders are not affected.
 *
 *     requests = taken + refused, by cause + cut off + in progress
 *     spans in = held + overwritten + refused + passed on
 *
 * All functions run in the loop's thread. No function blocks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_IN_H
#define BLKIN_TOOLS_OTLP_IN_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "sdk_store.h"
#include "slow_spans.h"
#include "tools/base/loop.h"

#include <jansson.h>

/* otlp_in_open() copies the texts, because a reload frees them. */
struct otlp_in_options {
    const char *listen;   /* "[ADDRESS:]PORT", such as "127.0.0.1:4318"; NULL or "": no port */
    const char *socket;   /* the path of a Unix socket; NULL or "": no socket */
    uint64_t store_bytes; /* memory for spans */
    uint64_t spans_per_s; /* of one sender; requests beyond this rate are refused; 0: no limit */
};

struct otlp_in_callbacks {
    otlp_alarm_fn *alarm;
    /* Takes a span in place of the store. Returns false to leave the span to the store. May be
     * NULL. */
    bool (*span)(void *context, const struct otlp_origin *origin, const struct otlp_span *span);
    void *context;
};

struct otlp_in;

/* Listens. Returns NULL with error set. */
struct otlp_in *otlp_in_open(struct loop *loop, const struct otlp_in_options *options,
                             const struct otlp_in_callbacks *callbacks, struct error *error);
/* NULL is allowed. */
void otlp_in_close(struct otlp_in *in);

/* Sets spans_per_s, from the next request on. */
void otlp_in_limit(struct otlp_in *in, uint64_t spans_per_s);

/* Returns the memory of spans. An SDK sends a span up to some seconds after the span's end, so the
 * caller repeats sdk_memory_take() until then. */
const struct sdk_memory *otlp_in_memory(const struct otlp_in *in);

/* Returns the part of the status: addresses, held spans and the time from which they are complete,
 * rules in force, and all counts. NULL: out of memory. */
json_t *otlp_in_json(const struct otlp_in *in);

/* Prints the metrics blkin_agent_otlp_*. */
void otlp_in_print(const struct otlp_in *in, struct printer *printer);

#endif
