/*
 * The resource of a span in OTLP's sense: the entity that recorded the span. A port, a loopback
 * address and the address of one connection are no part of it, so a process has one resource.
 *
 * A foreign span that is sent unchanged has its original resource and scope.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_RESOURCE_H
#define BLKIN_OUTPUT_RESOURCE_H

#include "babeltrace-plugin/spans/span.h"

/* The tags of a span that belong to its resource. */
#define RESOURCE_HOST_TAG    "lttng.host"
#define RESOURCE_VERSION_TAG "service.version"

/* The texts belong to the span and its endpoint. */
struct resource {
    struct text service;
    struct text host;
    struct text version;
    struct text ip;                   /* of the host; empty: not known, or loopback */
    const struct span_entry *tags[2]; /* the tags with host and version; may be NULL */
    bool has_logical_address;         /* the span has a tag server.address or client.address */
    /* Of a foreign span that is sent unchanged; then the members above are empty. */
    const struct span_entry *message; /* SPAN_MESSAGE; NULL: another span */
    struct text whole, scope;         /* as in SPAN_ORIGIN */
};

/* A longer message Resource or InstrumentationScope is not sent unchanged. */
#define RESOURCE_MESSAGE_MAX ((1U << 14) - 1)

struct resource resource_of(const struct span *span);

/* Does not compare the tags. */
bool resource_equal(const struct resource *a, const struct resource *b);

/* Equal resources have equal hashes. */
uint64_t resource_hash(uint64_t seed, const struct resource *resource);

/* Returns the address of an endpoint, IPv4 or IPv6; empty: none. */
static inline struct text endpoint_address(const struct endpoint *endpoint)
{
    return text_of(endpoint->ipv4[0] ? endpoint->ipv4 : endpoint->ipv6);
}

#endif
