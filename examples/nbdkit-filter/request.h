/*
 * The span of one NBD request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <blkin/blkin.h>

#include <nbdkit-filter.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* All requests of a connection read this. Nobody changes it after the connection was opened. */
struct connection {
    bool is_inner;               /* another blkin filter is above, and makes the server spans */
    bool has_layer;              /* the layer below is traced, too */
    bool layers_are_spans;       /* as a separate span, not as a step of the request's span */
    bool has_parent;             /* the next member is set */
    struct blkin_context parent; /* of the server spans */
    const char *export;          /* the export's name without the trace context; "": no tag */
    uint16_t client_port;
    char client_ip[INET6_ADDRSTRLEN]; /* "": not over IP */
};

enum request_type {
    REQUEST_READ,
    REQUEST_WRITE,
    REQUEST_FLUSH,
    REQUEST_TRIM,
    REQUEST_ZERO,
    REQUEST_EXTENTS,
    REQUEST_CACHE
};

/* The arguments of a request. data: the buffer or the list of extents, if any. */
struct request {
    enum request_type type;
    uint32_t count;
    uint64_t offset;
    uint32_t flags;
    void *data;
};

/*
 * Returns true if anybody records spans. Must come first: this test is the whole cost of a request
 * while nobody records. A span that is not recorded would cost ten times as much.
 */
static inline bool request_is_traced(void)
{
    return __builtin_expect(blkin_is_on(), 0);
}

/* Passes the request on to the layer below, within a span. Returns the result of that layer. */
int request_trace(nbdkit_next *next, const struct connection *connection,
                  const struct request *request, int *err);

#endif /* REQUEST_H */
