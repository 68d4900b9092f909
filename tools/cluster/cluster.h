/*
 * The cluster: agents of several hosts ask each other for traces through an MQTT broker. Without
 * the key "cluster", an agent works alone.
 *
 * All topics have quality of service 1. The broker lets a host write only below its own name
 * (packaging/mosquitto). So the host in a topic is the message's sender.
 *
 * - blkin/HOST/state, retained: {"state": "here", "version": "...", "since": "...", "instance": a
 *   random number of the process}. The last will is {"state": "gone"}, kept for
 *   cluster-forget-hours. An empty message: the host is forgotten.
 * - blkin/HOST/want: a request of HOST to all others
 * - blkin/HOST/found/TO: the answer of HOST to a request of TO
 * - blkin/config, retained: lines of a configuration file for all agents, see config.h
 *
 * Messages are JSON objects:
 *
 *   {"id": "HOST:PID:N", "at": NS since 1970, "traces": [{"id": "32 hex digits", "begin":
 *    NS since 1970, "why": "osd*:write>20ms"}]}
 *       a want: traces of HOST's alarms, or of `blkin keep`.
 *       begin (of a trace, optional): the earliest begin of the trace that HOST knows. Receivers
 *       use its age, `at` less `begin`, because clocks of hosts differ.
 *       halves (of a trace, optional): ["c" or "s" and nine numbers of 16 hex digits, ...], the
 *       halves of requests that HOST has found in the trace, see tools/agent/halves.h
 *       left_out (optional): the number of further traces, which HOST does not want
 *   {"id": ..., "at": ..., "traces": [], "settled": ["64 hex digits", ...]}
 *       ids of traces, each with the id under which HOST sends that trace
 *   {"id": ..., "at": ..., "last_ms": 10000, "service": "osd"}
 *       a want: all traces of the last seconds. service (optional): only traces of the service
 *   {"id": the want's id, "held_from": NS since 1970, "held_us": the same time, in us before
 *    the want, "took_us": HOST's time for the answer (optional), "error": "..." (optional),
 *    "traces": [{"id": "...", "spans": 3, "have": ["16 hex", ...], "want": ["16 hex", ...]}]}
 *       a found: the answer to a want. held_from: the rings have all spans from then on.
 *       begin (of a trace, optional): when its first span began, NS since 1970.
 *       held_from, held_us (of a trace, optional): the host has the whole trace from then on, by
 * the rings of the trace's users and by the store of SDKs' spans. reach_ms (optional): the host
 * searched only records that were written from so long before the want on. The asking host repeats
 * the want of a trace that began earlier. have: the spans that were found; want: their parents that
 * were not found. The list has no traces without a found span. "more" (optional): the number of
 * found traces not in the list. cut (of a trace, optional): true if ids are missing in have or
 * want. late (optional): true in a further answer, with late spans
 *
 * The sender adds "number", by which receivers find duplicates, and "held_ms": how long the sender
 * had the message. The broker adds how long it had the message. So a receiver knows the age of a
 * want without comparing clocks. The callback also gets "type" ("keep": a want, or "found"), "host"
 * and "to", which are in the topic.
 *
 * Ids are printable ASCII without blanks; names of hosts are letters, digits, '.', '-' and '_'. A
 * message has at most 10000 traces and 1 MiB.
 *
 * A broker that was killed has lost the messages that it had accepted. So for CLUSTER_REPEAT_MS, a
 * message is published again when the connection or another host is back. No function blocks.
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
    /* The message has the form above. over: the host has exceeded its share of wants
     * (cluster-wants-per-s). The callback must not close the cluster. */
    void (*message)(void *context, const json_t *message, bool over);
    /* Gets the text of blkin/config, with cluster-config = yes. The text may be "", or unchanged.
     */
    void (*config)(void *context, const char *text);
    void *context;
};

/*
 * Uses the keys cluster and cluster-*. host: the name of this host. hosts_file: stores the names of
 * the other hosts. Returns NULL with error set if the keys are wrong. An unreachable broker is no
 * error.
 */
struct cluster *cluster_open(struct loop *loop, const struct config *config, const char *host,
                             const char *hosts_file, const struct cluster_callbacks *callbacks,
                             struct error *error);
void cluster_close(struct cluster *cluster); /* NULL is allowed */

/* Publishes a copy of the message, at once or when connected. NULL is allowed for both. Drops a
 * message of a wrong form, a message that is CLUSTER_REPEAT_MS old, and the oldest ones beyond 16
 * MiB. Logs and counts dropped messages.
 */
void cluster_send(struct cluster *cluster, const json_t *message);

/* Returns true if the broker is connected, and has not accepted all messages yet. NULL is allowed.
 */
bool cluster_is_sending(const struct cluster *cluster);

/*
 * Returns a new array with the hosts that a trace may have passed, this host first. The array has
 * hosts that are away, too, until they are forgotten. While the other hosts are unknown, because no
 * broker has answered this host yet, the array also has the broker's URL.
 */
json_t *cluster_hosts(const struct cluster *cluster);

/* Returns a new array: the known hosts that are away, and always the broker's URL. */
json_t *cluster_away(const struct cluster *cluster);

/*
 * {"url": ..., "state": "connected" | "away", "since": ..., "error": ..., "hosts": cluster_hosts(),
 * "away": ["store-2"], "sent": n, "received": n, "dropped": n, "refused": n, "malformed": n}. away:
 * known hosts without a connection. sent: messages that the broker accepted. dropped: messages that
 * the broker did not accept in time, or that had a wrong form. refused: messages that the broker's
 * rules forbid. malformed: messages of a wrong form from other hosts. The caller frees the object;
 * NULL: out of memory, or no cluster.
 */
json_t *cluster_json(const struct cluster *cluster);

#endif
