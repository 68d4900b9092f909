/*
 * Transports: where a batch of encoded spans goes.
 *
 * A batch is the text of a JSON array, '[' and ']' included. A transport blocks until the batch is
 * delivered or given up; it reports what became of it and the caller keeps the counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_TRANSPORT_H
#define BLKIN_OUTPUT_TRANSPORT_H

#include "../error.h"
#include "../core/text.h"

enum delivery {
    DELIVERY_ACCEPTED,
    DELIVERY_RETRY,   /* not now: the peer is down or busy; the same batch may be sent again */
    DELIVERY_REFUSED, /* never: the peer has read the batch and does not want it */
};

struct transport {
    /* error is set unless accepted. */
    enum delivery (*send)(struct transport *transport, struct text batch, struct error *error);

    /* Frees the transport. Returns false, with error set, if something delivered may be lost. */
    bool (*close)(struct transport *transport, struct error *error);
};

/*
 * Opens the transport of an endpoint: "http://..." or "https://..." (a Zipkin collector's span
 * URL; without a path, /api/v2/spans is added), or "file:PATH" (one JSON array, as the Zipkin UI's
 * "Upload JSON" takes it). A collector is asked whether it is there. Returns NULL with error set.
 */
struct transport *transport_open(const char *endpoint, struct error *error);

/* The two kinds, for transport_open(). */
struct transport *http_transport_open(const char *url, struct error *error);
struct transport *file_transport_open(const char *path, struct error *error);

#endif
