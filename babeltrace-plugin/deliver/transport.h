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
#include "body.h"
#include "counts.h"
#include "credentials.h"

#include <stdint.h>

struct protocol;

/* What the peer says to a run. */
struct transport_reply {
    enum outcome outcome; /* of all its spans; OUTCOME_AGAIN: not now */
    /* OUTCOME_AGAIN: the peer answers, so this run itself may be the cause of the failure. */
    bool may_be_batch;
    bool is_misplaced;      /* not sent: the number of partitions has changed since arrange() */
    int64_t retry_after_ms; /* the pause that the peer asks for; 0: none */
    uint64_t rejected;      /* spans of an accepted run that the peer refuses for good */
    struct error error;     /* empty: accepted, and the peer has no remark */
};

/* Runs of copied spans, each of which becomes a message of one partition. Zeros are none. */
struct arranged {
    struct body body;
    struct body_run *runs;
    size_t runs_room;
    uint32_t count;
    uint32_t *places; /* for each span, what arrange() has found out */
    size_t places_room;
};

void arranged_free(struct arranged *arranged);

struct transport {
    const char *warning; /* shown to the operator before the first batch; NULL: none */

    /* Does the peer take a batch without spans? */
    void (*probe)(struct transport *transport, struct transport_reply *reply);

    /* Sends a framed run. With await(), the reply is set only when await() returns. */
    void (*send)(struct transport *transport, const struct payload *payload,
                 struct transport_reply *reply);

    /*
     * For a peer with partitions, else NULL. arrange() sorts copies of the spans of a run into runs
     * that can be sent, each of at most so many bytes, in the empty `arranged`. Returns false when
     * out of memory. send() then only queues a run: await() waits until the replies to all queued
     * runs are set.
     */
    bool (*arrange)(struct transport *transport, const struct encoder *encoder, struct body_run run,
                    size_t bytes, struct arranged *arranged);
    void (*await)(struct transport *transport);
    uint32_t partitions; /* 0: not known yet; changes only within calls of this interface */

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
