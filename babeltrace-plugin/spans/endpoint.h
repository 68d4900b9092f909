/*
 * Endpoints, each stored once: thousands of spans share a few services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_ENDPOINT_H
#define BLKIN_CORE_ENDPOINT_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/* A checked endpoint. port is 0 (not known) or 1..65535. At most one of ipv4 and ipv6 is not empty,
 * in the form of inet_ntop(3). */
struct endpoint {
    struct text service;
    char ipv4[16];
    char ipv6[46];
    uint16_t port;
    uint64_t hash; /* of the original values: the same in each run */
};

struct endpoint_table;

/* Returns NULL when out of memory. */
struct endpoint_table *endpoint_table_new(void);

/* Frees the endpoints, too: after the last span that refers to one. NULL is allowed. */
void endpoint_table_free(struct endpoint_table *table);

/*
 * Returns the table's endpoint of these values. ip is IPv4 or IPv6; a zone id is cut off, and an
 * IPv4-mapped address becomes IPv4. Any other ip, such as "NaN", is no address. A negative port is
 * a port that a signed 16-bit field wrapped. Returns NULL when out of memory.
 *
 * Services beyond ENDPOINTS_MAX share one endpoint, the overflow, with the service
 * ENDPOINT_OVERFLOW. A service's name is cut to ENDPOINT_TEXT_MAX bytes: more than an encoder
 * writes, so the encoder sees that the name is too long.
 */
#define ENDPOINTS_MAX     65536
#define ENDPOINT_TEXT_MAX 1100
#define ENDPOINT_OVERFLOW "blkin: too many services"

const struct endpoint *endpoint_get(struct endpoint_table *table, struct text service,
                                    struct text ip, int64_t port);

/* Returns true if the endpoint, of any table, has these values. */
bool endpoint_is(const struct endpoint *endpoint, struct text service, struct text ip,
                 int64_t port);

bool endpoint_is_overflow(const struct endpoint_table *table, const struct endpoint *endpoint);

#endif
