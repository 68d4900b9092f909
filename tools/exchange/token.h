/*
 * A recorder's token tells the hub which host it is. The token is a line in a file that only its
 * owner may read. The hub has a file with the tokens of all hosts (hub/tokens.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TOKEN_H
#define BLKIN_TOOLS_TOKEN_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MAX 4096

struct token {
    char text[TOKEN_MAX]; /* printable ASCII; "": none */
};

/* Returns false with error set, also if others may read the file. */
bool token_read(struct token *token, const char *path, struct error *error);

/* Opens a file of secrets. Returns -1 with error set, also if others may read it. */
int token_open(const char *key, const char *path, struct error *error);

/* Returns false with error set if the token is too short, or has characters that are not printable.
 */
bool token_check(const char *key, const char *path, const char *text, struct error *error);

#endif
