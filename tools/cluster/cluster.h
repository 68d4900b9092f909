/*
 * The cluster: agents of several hosts ask each other for traces through an MQTT broker. Without
 * the key cluster there is none, and an agent works alone.
 *
 * All topics have quality of service 1. The broker lets a host write only below its own name
 * (packaging/mosquitto). So a message is of the host that its topic names.
 *
 * - blkin/HOST/state, retained: {"state": "here", "version": "...", "since": "..."}. The last will
 *   is {"state": "gone"}, kept for cluster-forget-hours. Empty: the host is forgotten.
 * - blkin/HOST/want: a request of HOST to all others
 * - blkin/HOST/found/TO: the answer of HOST to a request of TO
 * - blkin/config, retained: lines of a configuration file for all agents, see config.h
 *
 * Messages are JSON objects:
 *
 *   {"id": "HOST:PID:N", "at": NS since 1970, "traces": [{"id": "32 hex digits", "begin":
 *    NS since 1970, "why": "osd*:write>20ms"}]}
 *       a want: traces that HOST had an alarm for, or that `blkin keep` names.
 *       begin (of a trace, may be missing): as far as HOST knows, the trace began then. `at` less
 *       `begin` is the age of the begin: receivers compare no clocks.
 *       halves (of a trace, may be missing): ["c" or "s" and nine numbers of 16 hex digits, ...],
 *       the halves of requests that HOST has found of it, see tools/agent/halves.h
 *   {"id": ..., "at": ..., "traces": [], "settled": ["64 hex digits", ...]}
 *       ids of traces, each with the id under which HOST sends that trace
 *   {"id": ..., "at": ..., "last_ms": 10000, "service": "osd"}     (service may be missing)
 *       a want: all traces of the last seconds; with service, only those of the service
 *   {"id": that of the want, "held_from": NS since 1970: the rings have everything from then on,
 *    "error": "..." (optional),
 *    "traces": [{"id": "...", "spans": 3, "have": ["16 hex", ...], "want": ["16 hex", ...]}]}
 *       a found.
 *       begin (of a trace, may be missing): when its first span began, NS since 1970.
 *       held_from (of a trace, may be missing): when its spans may come from other sources than the
 *       rings, and the host has everything of these from then on only
 *       reach_ms (may be missing): the host has looked for what was written later than so long
 *       before the want only. HOST wants a trace that began earlier once more.
 *       have: the spans that were found; want: their parents that were not found. Traces without a
 *       found span are left out. "more" (may be missing): found traces that are not in the list.
 *
 * The sender adds "number", by which receivers know duplicates, and "held_ms": how long it had the
 * message. With the time that the broker tells, a receiver knows how old a want is, and compares no
 * clocks. To callbacks a message has "type" ("keep" or "found"), "host" and "to" of its topic.
 *
 * Ids are printable ASCII without blanks; names of hosts are letters, digits, '.', '-' and '_'. A
 * message has at most 10000 traces and 1 MiB.
 *
 * A message is published again when the connection, or another host, is back, for
 * CLUSTER_REPEAT_MS after its sending: a broker that was killed has lost what it had accepted.
 * Nothing here blocks the loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CLUSTER_H
#define BLKIN_TOOLS_CLUSTER_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>

#define CLUSTER_REPEAT_MS 40000

struct cluster;

struct cluster_callbacks {
    /* The message has the form above. over: a want of a host that has used up its share of wants
     * (cluster-wants-per-s). The callback must not close the cluster. */
    void (*message)(void *context, const json_t *message, bool over);
    /* The text of blkin/config, with cluster-config = yes. "": none. It may be the same again. */
    void (*config)(void *context, const char *text);
    void *context;
};

/*
 * Uses the keys cluster and cluster-*; host: our name; hosts_file: keeps the names of hosts over a
 * restart. Returns NULL with error set if the keys are wrong; a broker that does not answer is no
 * error.
 */
struct cluster *cluster_open(struct loop *loop, const struct config *config, const char *host,
                             const char *hosts_file, const struct cluster_callbacks *callbacks,
                             struct error *error);
void cluster_close(struct cluster *cluster); /* NULL is allowed */

/* Publishes a copy of the message as soon as the broker takes it. Drops and logs one of a wrong
 * form. */
void cluster_send(struct cluster *cluster, const json_t *message);

/* Is the broker there, and has yet to accept messages? */
bool cluster_is_sending(const struct cluster *cluster);

/*
 * The hosts that a trace may have passed, ours first: a new array of names. A host that is away is
 * one of them until it is forgotten. Until the broker has answered for the first time on this host,
 * the broker's URL is in the list in place of the other hosts.
 */
json_t *cluster_hosts(const struct cluster *cluster);

/* The known hosts that are not there, and the broker's URL as in cluster_hosts(): a new array. */
json_t *cluster_away(const struct cluster *cluster);

/*
 * {"url": ..., "state": "connected" | "away", "since": ..., "error": ..., "hosts": cluster_hosts(),
 * "away": ["store-2"], "sent": n, "received": n, "dropped": n, "refused": n, "malformed": n}. away:
 * hosts that are known and not there; sent: messages that the broker has accepted; dropped: ours
 * that it did not accept in time; refused: by the broker's rules; malformed: messages of a wrong
 * form that came. The caller frees it; NULL: out of memory.
 */
json_t *cluster_json(const struct cluster *cluster);

#endif
