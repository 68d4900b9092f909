/*
 * Takes spans of any OpenTelemetry SDK: OTLP over HTTP with protobuf, on TCP and at a Unix socket.
 * Holds the newest spans in memory, and gives an alarm for each slow or failed span. Gives the
 * spans of wanted traces as they came, with their resources and scopes.
 *
 * Each sender (otlp_peers.h) has a share of connections, of memory and of alarms. A request or span
 * beyond the share counts as the sender's, and the other senders go on.
 *
 *     requests = taken + refused, by cause + cut off
 *     spans in = held + overwritten + refused + passed on
 *
 * All functions run in the loop's thread. No function waits.
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

/* Texts are copied, because a reload frees them. A number of 0 means the value in brackets. */
struct otlp_in_options {
    const char *listen;     /* "[ADDRESS:]PORT", such as "127.0.0.1:4318"; NULL or "": no port */
    const char *socket;     /* the path of a Unix socket; NULL or "": no socket */
    uint64_t store_bytes;   /* memory for spans (64 MiB) */
    uint64_t message_bytes; /* of a request after decompression, at most (8 MiB) */
    /* At once (256): a further one ends the longest idle one of the sender with the most. */
    uint64_t connections;
    uint64_t spans_per_s; /* of one sender; 0: no limit. Beyond, it is told to retry later */
};

struct otlp_in_callbacks {
    otlp_alarm_fn *alarm;
    /* Takes a span at once, in place of the store. Returns false: the store gets the span. May be
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

/* Sets the limits of messages, connections and spans per second, from the next request on. Other
 * addresses and another size of the memory need a restart. */
void otlp_in_reload(struct otlp_in *in, const struct otlp_in_options *options);

/*
 * Gives the spans of this trace that were not given before; see sdk_store.h. An SDK sends a span up
 * to some seconds after the span's end. So the caller asks for a trace repeatedly, until no more
 * spans are to be expected. Each call gets a span and its origin for otlp_decode_span().
 */
void otlp_in_take(const struct otlp_in *in, struct sdk_wanted *wanted, otlp_span_fn *call,
                  void *context);

/* Gives all spans that were open at any time from from_ns until until_ns, since 1970. */
void otlp_in_copy(const struct otlp_in *in, int64_t from_ns, int64_t until_ns, otlp_span_fn *call,
                  void *context);

struct sdk_held otlp_in_held(const struct otlp_in *in);

/* "http://127.0.0.1:4318"; "": no port. */
const char *otlp_in_url(const struct otlp_in *in);

/* For the status: addresses, held spans and the time since when they are held, the rules in force,
 * and all counts. NULL: out of memory. */
json_t *otlp_in_json(const struct otlp_in *in);

/* For the page of metrics: blkin_agent_otlp_*. */
void otlp_in_print(const struct otlp_in *in, struct printer *printer);

#endif
