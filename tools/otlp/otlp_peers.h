/*
 * The senders of spans, their shares, and their counts. A sender is a user at the Unix socket (the
 * kernel tells which), or an address on TCP. All loopback addresses are one sender. IPv6 addresses
 * with equal first 64 bits are one sender, too, as one host can have all of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_PEERS_H
#define BLKIN_TOOLS_OTLP_PEERS_H

#include "sdk_store.h"
#include "tools/base/payer.h"

/* If so many senders have connections, all further senders count as one, "others". */
#define OTLP_PEERS_MAX 64

struct otlp_counts {
    uint64_t requests;
    uint64_t requests_taken;
    uint64_t requests_cut_off;  /* the sender hung up, or took too long */
    uint64_t refused_page;      /* a wrong path or method, or sent by a web page */
    uint64_t refused_type;      /* not protobuf, or another compression than gzip */
    uint64_t refused_too_large; /* longer than message_bytes */
    uint64_t refused_broken;    /* not gzip, or malformed: spans before the fault were taken */
    uint64_t refused_rate;      /* too many spans per second */
    uint64_t refused_memory;    /* out of memory, or of the share of BODIES_MAX */
    uint64_t connections;       /* all that were ever accepted */
    uint64_t hung_up;           /* connections that were too many, or took too long */
    uint64_t bytes;             /* of bodies, before decompression */
    uint64_t spans_in;
    uint64_t spans_invalid;   /* refused: without ids */
    uint64_t spans_too_large; /* refused by sdk_store_add() */
    uint64_t spans_passed_on; /* taken at once: see otlp_in_callbacks */
    uint64_t spans_overwritten;
    uint64_t alarms;
    uint64_t alarms_held_back; /* by the rules' limit */
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
