/*
 * Where a server listens, of the metrics page or the hub: "[ADDRESS:]PORT".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_METRICS_ADDRESS_H
#define BLKIN_ACCOUNT_METRICS_ADDRESS_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

struct metrics_address {
    char host[64]; /* numeric; 127.0.0.1 unless given */
    char port[8];
};

/* Takes "9464", "10.0.0.3:9464" or "[::1]:9464". Returns false with error set; key is for it. */
bool metrics_address_parse(struct metrics_address *address, const char *key, const char *text,
                           struct error *error);

/* Returns a listening socket, non-blocking, or -1 with error set; key and text are for it. */
int metrics_address_listen(const struct metrics_address *address, const char *key, const char *text,
                           struct error *error);

#endif
