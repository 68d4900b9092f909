/*
 * Transports: where a batch of encoded spans goes.
 *
 * One thread uses a transport, a sender's. send() blocks that thread until the fate of the batch is
 * known: over a network for request_timeout_ms at most, for the reader of a pipe without a limit.
 * cancel() ends the wait at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_TRANSPORT_H
#define BLKIN_OUTPUT_TRANSPORT_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/text.h"
#include "credentials.h"

#include <stdatomic.h>
#include <stdint.h>

struct payload {
    struct text text;   /* an encoded batch */
    struct text spans;  /* the spans and separators in it, without the frame */
    uint32_t partition; /* both 0 for a transport without partitions */
    uint32_t partitions;
    bool stays; /* the text stays unchanged until await() returns */
};

struct protocol;

enum delivery {
    DELIVERY_ACCEPTED,
    DELIVERY_RETRY,     /* not now; the same batch may be sent again */
    DELIVERY_INVALID,   /* the peer cannot read something in it; it may accept a part of it */
    DELIVERY_TOO_LARGE, /* the peer may accept a part of it */
    DELIVERY_REFUSED,   /* the peer will never accept it */
    DELIVERY_POSSIBLY_PERSISTED, /* the peer may have it: a retry could store it twice */
    DELIVERY_DIVIDE,             /* not sent: the number of partitions has changed */
};

struct reply {
    enum delivery delivery;
    /* DELIVERY_RETRY: the peer answers, so this batch itself may be the cause of the failure. */
    bool may_be_batch;
    int64_t retry_after_ms; /* the pause that the peer asks for; 0: none */
    uint64_t rejected;      /* spans of an accepted batch that the peer refuses for good */
    struct error error;     /* empty: accepted, and the peer has no remark */
};

/* Of one message. */
struct part_limits {
    uint32_t spans;
    size_t bytes;
};

struct transport {
    const char *warning; /* shown to the operator before the first batch; NULL: none */

    /* Does the peer take a batch without spans? */
    void (*probe)(struct transport *transport, struct reply *reply);

    void (*send)(struct transport *transport, const struct payload *payload, struct reply *reply);

    /*
     * For a peer with partitions, else NULL: post() queues a batch for one partition and returns;
     * await() waits until the replies to all posted batches are set.
     */
    void (*post)(struct transport *transport, const struct payload *payload, struct reply *reply);
    void (*await)(struct transport *transport);
    struct part_limits limits;
    _Atomic uint32_t partitions; /* 0: not known yet; changes only within calls of this interface */

    /* From any thread: requests under way and all later ones fail at once. */
    void (*cancel)(struct transport *transport);

    /*
     * After the last send(). Returns false, with error set, if accepted spans may be lost. May be
     * NULL.
     */
    bool (*finish)(struct transport *transport, struct error *error);

    /* From any thread, when no other thread uses the transport. */
    void (*free)(struct transport *transport);
};

enum compression {
    COMPRESSION_AUTO, /* only if the peer is on another host */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZSTD,
};

/* The transport copies all texts. NULL: not given; the endpoint is always given. */
struct transport_options {
    const struct protocol *protocol;
    const char *endpoint;
    int64_t request_timeout_ms;
    enum compression compression;
    const char *tls_ca; /* files */
    const char *tls_cert;
    const char *tls_key;
    struct credential_sources credentials;
    const char *kafka_file;
};

/*
 * For "http://..." or "https://..." (a collector's URL; one without a path gets the protocol's),
 * for "kafka://...", and for "file:PATH". The file holds one large batch, such as the JSON array
 * that "Upload JSON" of the Zipkin UI takes. Nothing is sent yet. Return NULL with error set.
 */
struct transport *http_transport_open(const struct transport_options *options, struct error *error);
struct transport *kafka_transport_open(const struct transport_options *options,
                                       struct error *error);
struct transport *file_transport_open(const struct transport_options *options, const char *path,
                                      struct error *error);

#endif
