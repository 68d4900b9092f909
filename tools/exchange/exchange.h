/*
 * The exchange: the recorders of several hosts ask each other for traces. All other recorders get a
 * request, and the recorder that asked gets the answers; each message arrives once. Without the key
 * hub, the exchange does nothing.
 *
 * Messages are JSON objects:
 *
 *   {"type": "keep", "id": "HOST:PID:N", "host": "store-1", "at": NS since 1970,
 *    "traces": [{"id": "32 hex digits", "why": "osd*:write>20ms"}]}
 *       "keep these": traces that host had an alarm for, or that `blkin keep` names
 *   {"type": "keep", ..., "last_ms": 10000, "service": "osd"}     (service may be missing)
 *       all traces of the last seconds; with service, only those of the service
 *       "held_ms" (may be missing): how long the message was on its way, added up by its poster and
 *       the hub; so nobody compares clocks to know the last seconds
 *   {"type": "found", "id": that of "keep", "to": its host, "host": the one that answers,
 *    "held_from": NS since 1970: the ring has everything from then on, "error": "..." (optional),
 *    "traces": [{"id": "...", "spans": 3, "have": ["16 hex", ...], "want": ["16 hex", ...]}]}
 *       begin (of a trace, may be missing): when its first span began, NS since 1970.
 *       held_from (of a trace, may be missing): when its spans may come from other sources than the
 *       ring, and the host has everything of these from then on only
 *       have: the spans that were found; want: their parents that were not found. Traces without a
 *       found span are left out. "more" (may be missing): found traces that are not in the list.
 *   {"type": "dropped", "id": that of our "keep", "host": ours, "traces": ["32 hex digits", ...]}
 *       from the exchange itself: the hub's cap (hub-traces-per-s) is reached, so no other host is
 *       asked for these traces; no traces: the same for the whole request
 *
 * Ids are printable ASCII without blanks; names of hosts are letters, digits, '.', '-' and '_'. A
 * message has at most 10000 traces and 1 MiB. The exchange adds "post", by which it recognizes
 * duplicates, and checks all messages: see message.c.
 *
 * `blkin hub` carries the messages (http:// or https://). The exchange never blocks the loop. It
 * loses no message while the hub is away for less than 30 s, and counts those that it drops later.
 * A recorder that starts again gets the messages since the recorder before it last asked the hub.
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
    /* The message has the form above. The callback must not close the exchange. */
    void (*message)(void *context, const json_t *message);
    void *context;
};

/*
 * Uses the keys hub, hub-token-file, hub-ca-file, hub-cert-file and hub-key-file. host: our name.
 * Returns NULL with error set if the keys are wrong; it is no error if the hub does not answer.
 */
struct exchange *exchange_open(struct loop *loop, const struct config *config, const char *host,
                               const struct exchange_callbacks *callbacks, struct error *error);
void exchange_close(struct exchange *exchange); /* NULL is allowed */

/* Posts a copy of the message as soon as the hub takes it. Drops and logs one of a wrong form. */
void exchange_post(struct exchange *exchange, const json_t *message);

/* Has the hub answered last, and is it to take messages yet? */
bool exchange_is_posting(const struct exchange *exchange);

/*
 * {"url": ..., "state": "connected" | "away", "since": ..., "error": ..., "hosts": ["store-1",
 * ...], "posted": n, "received": n, "dropped": n, "dropped_traces": n, "refused": n, "malformed":
 * n}. hosts: those of the last 30 s, ours first; while the hub is away, those of before. dropped:
 * messages that waited too long for the hub; dropped_traces: by the cap; refused: messages that the
 * hub did not take; malformed: messages of a wrong form that came. The caller frees it; NULL: out
 * of memory.
 */
json_t *exchange_json(const struct exchange *exchange);

#endif
