/*
 * The tokens of all hosts, as the hub knows them: a file of lines "HOST TOKEN". Whoever shows a
 * token speaks for its host, and for no other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TOKENS_H
#define BLKIN_TOOLS_TOKENS_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_DIGEST 32 /* of SHA-256: which of them is compared first tells nothing of a token */

struct tokens {
    struct host_token {
        uint8_t digest[TOKEN_DIGEST];
        char *host;
    } * list; /* by digest */
    size_t count;
};

/* Returns false with error set. tokens_free() is due in both cases. */
bool tokens_read(struct tokens *tokens, const char *path, struct error *error);
void tokens_free(struct tokens *tokens);

/* The host of this token; NULL: there is no such token. */
const char *tokens_host(const struct tokens *tokens, const char *given);

#endif
