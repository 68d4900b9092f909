/*
 * The senders of spans, their shares, and their counts. A sender is a user at the Unix socket (the
 * kernel tells which), or an address on TCP. All loopback addresses are one sender. IPv6 addresses
 * with equal first 64 bits are one sender, too, as one host can have all such addresses.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_PEERS_H
#define BLKIN_TOOLS_OTLP_PEERS_H

#include "sdk_store.h"
#include "tools/base/payer.h"

/* If this number of senders have connections, all further senders count as one sender, "others". */
#define OTLP_PEERS_MAX 64

/* The counters, with their help texts for Prometheus. */
#define OTLP_COUNTS(X)                                                                            \
    X(requests, "Requests that arrived.")                                                         \
    X(requests_taken, "Requests whose spans were accepted.")                                      \
    X(requests_cut_off, "Requests whose sender went away or took too long.")                      \
    X(refused_page, "Requests that are not POST /v1/traces, or from a web page.")                 \
    X(refused_type, "Requests that are not protobuf, or compressed by something else than gzip.") \
    X(refused_too_large, "Requests that are too large.")                                          \
    X(refused_broken, "Requests that are not OTLP.") /* spans before the fault were taken */      \
    X(refused_rate, "Requests beyond the limit of spans per second.")                             \
    X(refused_memory, "Requests for which there was no memory.") /* or no share of it */          \
    X(connections, "Connections of senders.")                                                     \
    X(hung_up, "Connections closed because they were too many or took too long.")                 \
    X(bytes, "Bytes of the bodies of requests, before decompression.")                            \
    X(spans_in, "Spans that arrived.")                                                            \
    X(spans_invalid, "Spans that were refused because they have no valid ids.")                   \
    X(spans_too_large, "Spans that were refused as too large.")                                   \
    X(spans_no_memory, "Spans that were refused because memory ran out.")                         \
    X(spans_passed_on, "Spans that were sent at once (send = all).")                              \
    X(spans_overwritten, "Spans in memory that newer ones have overwritten.")                     \
    X(alarms, "Alarms of spans that were slow or failed.")                                        \
    X(alarms_held_back, "Alarms that the limit of the rules suppressed.")

struct otlp_counts {
#define OTLP_COUNT(name, help) uint64_t name;
    OTLP_COUNTS(OTLP_COUNT)
#undef OTLP_COUNT
};

struct otlp_peer {
    struct payer payer;        /* "user 1000", "10.0.0.3", "2001:db8::/64" */
    struct otlp_counts counts; /* incomplete: see otlp_peer_counts() */
    uint64_t body_bytes;       /* memory of the requests in progress */
    double allowance;          /* spans allowed now; below 0: excess spans */
    int64_t allowed_ms;        /* the time of `allowance` */
    struct sdk_store *store;
};

struct otlp_peers {
    struct sdk_memory memory;
    struct payers payers;
    struct otlp_counts gone; /* of removed senders */
};

void otlp_peers_begin(struct otlp_peers *peers, uint64_t memory_bytes);
void otlp_peers_end(struct otlp_peers *peers);

/* Returns the sender of a new connection; NULL: out of memory. */
struct otlp_peer *otlp_peers_find(struct otlp_peers *peers, int fd, const union peer_address *from);

struct otlp_counts otlp_peer_counts(const struct otlp_peer *peer);
struct otlp_counts otlp_peers_counts(const struct otlp_peers *peers);

#endif
