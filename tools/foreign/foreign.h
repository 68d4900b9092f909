/*
 * Takes spans of any OpenTelemetry SDK: OTLP over HTTP with protobuf, on loopback and at a Unix
 * socket. Holds the newest ones in memory, tells which are slow or have failed as they come, and
 * gives the spans of wanted traces as they came, with their resources and scopes.
 *
 *     requests = taken + refused, by cause + cut off
 *     spans in = held + overwritten + refused + passed on
 *
 * Everything happens in the loop's thread. Nothing here waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_H
#define BLKIN_TOOLS_FOREIGN_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "options.h"
#include "store.h"
#include "tools/base/loop.h"

#include <jansson.h>

struct foreign;

/* Listens. Returns NULL with error set. */
struct foreign *foreign_open(struct loop *loop, const struct foreign_options *options,
                             const struct foreign_callbacks *callbacks, struct error *error);
/* NULL is allowed. */
void foreign_close(struct foreign *foreign);

/* Other limits of messages, connections and spans per second, from the next request on. Addresses
 * and the size of the memory stay as they are: they need a restart. */
void foreign_reload(struct foreign *foreign, const struct foreign_options *options);

/*
 * Gives the spans of this trace that were not given before; see store.h. SDKs send a span up to
 * some seconds after its end, so a trace is asked for again until nothing more is to be expected.
 * Each call gets a span and its origin, as otlp_decode_span() wants them.
 */
void foreign_take(const struct foreign *foreign, struct foreign_wanted *wanted, otlp_span_fn *call,
                  void *context);

/* Gives all spans that were open at any time from from_ns until until_ns, since 1970. */
void foreign_copy(const struct foreign *foreign, int64_t from_ns, int64_t until_ns,
                  otlp_span_fn *call, void *context);

struct foreign_held foreign_held(const struct foreign *foreign);

/* "http://127.0.0.1:4318"; "": it listens at no port. */
const char *foreign_url(const struct foreign *foreign);

/* For the status: where it listens, what it holds and since when, the rules in force, and all
 * counts. NULL: out of memory. */
json_t *foreign_json(const struct foreign *foreign);

/* For the page of metrics: blkin_agent_otlp_*. */
void foreign_print(const struct foreign *foreign, struct printer *printer);

#endif
