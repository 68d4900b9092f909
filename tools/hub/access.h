/*
 * Who may speak to the hub: who shows the token, a certificate, or both, as is configured.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_ACCESS_H
#define BLKIN_TOOLS_HUB_ACCESS_H

#include "config/config.h"
#include "error.h"
#include "exchange/token.h"

#include <microhttpd.h>
#include <stdbool.h>

struct access {
    struct token token;       /* empty: none is wanted */
    char *cert, *key, *trust; /* PEM; NULL: no TLS; no certificate of recorders is wanted */
    bool is_tls, wants_certificate;
};

/* Reads the files. Returns false with error set. access_close() is due in both cases. */
bool access_open(struct access *access, const struct config *config, struct error *error);
void access_close(struct access *access);

/* May a hub with these means listen beyond loopback? */
bool access_is_guarded(const struct access *access);

/* Returns NULL if it may, else why not, for the answer. */
const char *access_denied(const struct access *access, struct MHD_Connection *connection);

#endif
