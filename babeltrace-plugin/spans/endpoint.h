/*
 * Endpoints, kept once each: thousands of spans share a handful of services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_ENDPOINT_H
#define BLKIN_CORE_ENDPOINT_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/*
 * Checked when it is made: port is 0 (not known) or 1..65535, and at most one of ipv4 and ipv6 is
 * not empty, as inet_ntop(3) writes it.
 */
struct endpoint {
    struct text service;
    char ipv4[16];
    char ipv6[46];
    uint16_t port;
    uint64_t hash; /* of what it was made of: the same in each run */
};

struct endpoint_table;

/* Returns NULL when out of memory. */
struct endpoint_table *endpoint_table_new(void);

/* Frees the endpoints too: after the last span that refers to one. NULL is allowed. */
void endpoint_table_free(struct endpoint_table *table);

/*
 * The endpoint of these values, owned by the table. ip is IPv4, IPv6 (a zone id is cut off, an
 * IPv4-mapped address becomes IPv4) or something else, such as "NaN": then there is no address.
 * A negative port is one that a signed 16-bit field wrapped. Returns NULL when out of memory.
 *
 * No honest set of traces has more than ENDPOINTS_MAX services: those beyond share one endpoint,
 * the overflow, whose service is called ENDPOINT_OVERFLOW. Of a service's name ENDPOINT_TEXT_MAX
 * bytes are kept: more than an encoder writes, so that it sees that the name is too long.
 */
#define ENDPOINTS_MAX     65536
#define ENDPOINT_TEXT_MAX 1100
#define ENDPOINT_OVERFLOW "blkin: too many services"

const struct endpoint *endpoint_get(struct endpoint_table *table, struct text service,
                                    struct text ip, int64_t port);

/* Whether the endpoint is that of these values: an endpoint made by any table. */
bool endpoint_is(const struct endpoint *endpoint, struct text service, struct text ip,
                 int64_t port);

bool endpoint_is_overflow(const struct endpoint_table *table, const struct endpoint *endpoint);

#endif
