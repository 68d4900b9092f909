/*
 * The exchange: how the recorders of several hosts ask each other for traces. A request that one
 * posts is given to all others, an answer to the one that has asked, each once; a recorder without
 * others (hub is not set) has an exchange that does nothing.
 *
 * Messages are JSON objects:
 *
 *   {"type": "keep", "id": "HOST:PID:N", "host": "store-1", "at": NS since 1970,
 *    "traces": [{"id": "32 hex digits", "why": "osd*:write>20ms"}]}
 *       "keep these": what host has had an alarm for, or what `blkin keep` was given
 *   {"type": "keep", ..., "last_ms": 10000, "service": "osd"}     (service may be missing)
 *       all that the last seconds had; of a service: its traces
 *       "held_ms" (may be missing): so long the message was on its way, as its poster and the hub
 *       add it up: so what the last seconds had is known without comparing clocks
 *   {"type": "found", "id": that of "keep", "to": its host, "host": who answers,
 *    "held_from": NS since 1970: from then on the ring had all, "error": "..." (may be missing),
 *    "traces": [{"id": "...", "spans": 3, "have": ["16 hex", ...], "want": ["16 hex", ...]}]}
 *       begin (of a trace, may be missing): when its first span began, NS since 1970.
 *       have: the spans that were found; want: parents that are not among them. Traces of which
 *       nothing was found are not there. "more" (may be missing): traces that were found and are
 *       not in the list.
 *   {"type": "dropped", "id": that of our "keep", "host": ours, "traces": ["32 hex digits", ...]}
 *       of the exchange itself: nobody else is asked for these, the cap (hub-traces-per-s) is
 *       reached; no traces: that is so for the whole request
 *
 * Ids are of printable ASCII without blanks, names of hosts of letters, digits, '.', '-' and '_'; a
 * message has at most 10000 traces and 1 MiB: who has more posts several. The exchange adds "post",
 * by which it knows doubles, and checks what it is given: see message.c.
 *
 * `blkin hub` carries the messages (http:// or https://). The exchange does not block the loop, and
 * loses no messages while the hub is away for less than 30 s; what is dropped then is counted. A
 * recorder that is started again gets what came since the one before it asked the hub last.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXCHANGE_H
#define BLKIN_TOOLS_EXCHANGE_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>

struct exchange;

struct exchange_callbacks {
    /* It has the form above. The exchange must not be closed in here. */
    void (*message)(void *context, const json_t *message);
    void *context;
};

/*
 * As the keys hub, hub-token-file, hub-ca-file, hub-cert-file, hub-key-file say. host: our name.
 * Returns NULL with error set if they are wrong; that nobody answers is no error.
 */
struct exchange *exchange_open(struct loop *loop, const struct config *config, const char *host,
                               const struct exchange_callbacks *callbacks, struct error *error);
void exchange_close(struct exchange *exchange); /* NULL is allowed */

/* Copies it; it is posted as soon as the other side takes it. One of a wrong form is said and
 * dropped. */
void exchange_post(struct exchange *exchange, const json_t *message);

/*
 * {"url": ..., "state": "connected" | "away", "since": ..., "error": ..., "hosts": ["store-1",
 * ...], "posted": n, "received": n, "dropped": n, "dropped_traces": n, "refused": n, "malformed":
 * n}: hosts that are there, or were within the last 30 s, ours first; while the other side is away,
 * as it was before. dropped: messages that the other side was away for too long for;
 * dropped_traces: by the cap; refused: messages that it did not take; malformed: such as came. New;
 * NULL: out of memory.
 */
json_t *exchange_json(const struct exchange *exchange);

#endif
