/*
 * Transports: where a batch of encoded spans goes.
 *
 * A transport is used by one thread, the sender's, and blocks it until it knows what has become of
 * a batch. Over a network that takes request_timeout_ms at most, while the reader of a pipe may
 * stand still for as long as it likes; cancel() ends the wait at once.
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

/* An encoded batch, and its part that is spans and separators, without the frame. */
struct payload {
    struct text text;
    struct text spans;
    uint32_t partition; /* of so many; all is 0 where there are none */
    uint32_t partitions;
    bool stays; /* until await() nobody writes over it */
};

struct protocol;

enum delivery {
    DELIVERY_ACCEPTED,
    DELIVERY_RETRY,     /* not now; the same batch may be sent again */
    DELIVERY_INVALID,   /* the peer cannot read something in it; a part of it may be accepted */
    DELIVERY_TOO_LARGE, /* a part of it may be accepted */
    DELIVERY_REFUSED,   /* never */
    DELIVERY_POSSIBLY_PERSISTED, /* it may have been accepted: sent again, it may be there twice */
    DELIVERY_DIVIDE,             /* not sent: there is another number of partitions now */
};

struct reply {
    enum delivery delivery;
    /* DELIVERY_RETRY: the peer is there, and what it cannot cope with may be this very batch. */
    bool may_be_batch;
    int64_t retry_after_ms; /* the peer has asked for this pause; 0: it has not */
    uint64_t rejected;      /* so many of those that were accepted are refused for good */
    struct error error;     /* empty: the peer has accepted it, and has nothing to say */
};

/* Of a message. */
struct part_limits {
    uint32_t spans;
    size_t bytes;
};

struct transport {
    const char *warning; /* for the operator, before anything is sent; NULL: none */

    /* Does the peer take a batch without spans? */
    void (*probe)(struct transport *transport, struct reply *reply);

    void (*send)(struct transport *transport, const struct payload *payload, struct reply *reply);

    /*
     * Of a peer with partitions, else NULL: post() takes a batch for one of them without waiting,
     * await() waits until the replies of all that were posted are set.
     */
    void (*post)(struct transport *transport, const struct payload *payload, struct reply *reply);
    void (*await)(struct transport *transport);
    struct part_limits limits;
    _Atomic uint32_t partitions; /* 0: it is not known yet; only a call of ours changes it */

    /* From any thread: what is under way, and all that comes later, waits for nobody any more. */
    void (*cancel)(struct transport *transport);

    /*
     * After the last send(). Returns false, with error set, if something that was accepted may be
     * lost. May be NULL: nothing is to be done.
     */
    bool (*finish)(struct transport *transport, struct error *error);

    /* From any thread, once no other uses it. */
    void (*free)(struct transport *transport);
};

enum compression {
    COMPRESSION_AUTO, /* where a network is in between */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZSTD,
};

/* Texts may be NULL for "not given", but the endpoint. They are copied. */
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
 * The kinds: of "http://..." or "https://..." (a collector's URL; without a path, the protocol's is
 * added), of "kafka://...", and of "file:PATH" (one batch in the end, such as the JSON array that
 * the Zipkin UI's "Upload JSON" takes). Nothing is sent yet. All return NULL with error set.
 */
struct transport *http_transport_open(const struct transport_options *options, struct error *error);
struct transport *kafka_transport_open(const struct transport_options *options,
                                       struct error *error);
struct transport *file_transport_open(const struct protocol *protocol, const char *path,
                                      struct error *error);

#endif
