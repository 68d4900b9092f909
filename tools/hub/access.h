/*
 * Who may speak to the hub, and for which host: a recorder shows its host's token, a certificate
 * with its host's name, or both, as is configured.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_ACCESS_H
#define BLKIN_TOOLS_HUB_ACCESS_H

#include "babeltrace-plugin/base/error.h"
#include "tools/config/config.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_DIGEST 32 /* of SHA-256: which of them is compared first tells nothing of a token */

/* The tokens of all hosts: a file of lines "HOST TOKEN". Whoever shows a token speaks for its host,
 * and for no other. */
struct tokens {
    struct host_token {
        uint8_t digest[TOKEN_DIGEST];
        char *host;
    } * list; /* by digest */
    size_t count;
};

struct access {
    struct tokens tokens;     /* none: none is wanted */
    char *cert, *key, *trust; /* PEM; NULL: no TLS; no certificate of recorders is wanted */
    bool is_tls, wants_certificate;
};

/* Reads the files. Returns false with error set. access_close() is due in both cases. */
bool access_open(struct access *access, const struct config *config, struct error *error);
void access_close(struct access *access);

/* Does it know who speaks? If not, whoever reaches it may speak for any host. */
bool access_is_guarded(const struct access *access);

/*
 * May this request be answered? host: for which it speaks, NULL for what is shown to all hosts.
 * Returns 0 if it may, else the status of HTTP to deny it with, and *why.
 */
unsigned access_denied(const struct access *access, struct MHD_Connection *connection,
                       const char *host, const char **why);

/*
 * A web page can have a browser send requests: what no recorder sends is denied. has_effect: the
 * request does more than to show something. Returns as access_denied().
 */
unsigned access_from_page(const struct access *access, struct MHD_Connection *connection,
                          bool has_effect, const char **why);

#endif
