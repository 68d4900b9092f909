/*
 * Transports: the destination of encoded batches.
 *
 * One sender thread uses a transport. send(), or await() if there is one, blocks the thread until
 * the outcome is known: over a network for request_timeout_ms at most, for the reader of a pipe
 * without a limit. cancel() ends the wait at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_TRANSPORT_H
#define BLKIN_DELIVER_TRANSPORT_H

#include "babeltrace-plugin/base/error.h"
#include "body.h"
#include "queue.h"
#include "credentials.h"

#include <stdint.h>

struct protocol;

/* The peer's answer to a run. */
struct transport_reply {
    enum outcome outcome; /* of all spans of the run; OUTCOME_AGAIN: not now */
    /* OUTCOME_AGAIN: the peer answers, so the run may cause the failure. */
    bool may_be_batch;
    bool is_misplaced;      /* not sent: the number of partitions has changed since arrange() */
    int64_t retry_after_ms; /* the pause that the peer asks for; 0: none */
    uint64_t rejected;      /* spans of an accepted run that the peer refuses for good */
    struct error error;     /* empty: accepted without a remark */
};

/* Copied spans in runs, a run for each message of a partition. Zeros: none. */
struct arranged {
    struct body body;
    struct body_run *runs;
    size_t runs_room;
    uint32_t count;
    uint32_t *slots; /* memory for arrange() to sort the spans */
    size_t slots_room;
};

void arranged_free(struct arranged *arranged);

struct transport {
    const char *warning; /* shown to the operator before the first batch; NULL: none */

    /* Sends a batch without spans, to see whether the peer takes it. */
    void (*probe)(struct transport *transport, struct transport_reply *reply);

    /* Sends a framed run. With await(), only await() sets the reply. */
    void (*send)(struct transport *transport, const struct payload *payload,
                 struct transport_reply *reply);

    /*
     * NULL if the peer has no partitions. arrange() copies the spans of a run into `arranged`, as
     * runs that can be sent: each has `bytes` bytes at most, or one span. While `partitions` is 0,
     * there is one run of any size. arrange() returns false when out of memory. A transport with
     * arrange() only queues a run in send(); await() waits until all replies are set.
     */
    bool (*arrange)(struct transport *transport, const struct encoder *encoder, struct body_run run,
                    size_t bytes, struct arranged *arranged);
    void (*await)(struct transport *transport);
    uint32_t partitions; /* 0: not known yet; changes only within calls of this interface */

    /* Makes all current and later requests fail at once. Any thread may call this function. */
    void (*cancel)(struct transport *transport);

    /* Called after the last send(). Returns false, with error set, if accepted spans may be lost.
     * May be NULL. */
    bool (*finish)(struct transport *transport, struct error *error);

    /* Any thread may call this function when no other thread uses the transport. */
    void (*free)(struct transport *transport);
};

enum compression {
    COMPRESSION_AUTO, /* only if the peer is on another host */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZSTD,
};

/* The transport copies all texts. NULL: not given. The endpoint is always given. */
struct transport_options {
    const struct protocol *protocol;
    const char *endpoint;
    bool continues; /* a file may have spans of this protocol, written by an earlier transport */
    int64_t request_timeout_ms;
    enum compression compression;
    const char *tls_ca; /* files */
    const char *tls_cert;
    const char *tls_key;
    struct credential_sources credentials;
    const char *kafka_file;
};

/*
 * Open a transport for "http://..." or "https://..." (a collector's URL; the protocol adds a
 * missing path), for "kafka://...", and for "file:PATH". The file is one large batch, such as the
 * JSON array that "Upload JSON" of the Zipkin UI takes. These functions send nothing. They return
 * NULL with error set.
 */
struct transport *http_transport_open(const struct transport_options *options, struct error *error);
struct transport *kafka_transport_open(const struct transport_options *options,
                                       struct error *error);
struct transport *file_transport_open(const struct transport_options *options, const char *path,
                                      struct error *error);

#endif
