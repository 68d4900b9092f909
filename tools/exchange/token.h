/*
 * The secret that the hub and its recorders share: a line in a file that only its owner may read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TOKEN_H
#define BLKIN_TOOLS_TOKEN_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MAX 4096

struct token {
    char text[TOKEN_MAX]; /* printable ASCII; "": none */
};

/* Returns false with error set, if the file is not one that holds a secret well. */
bool token_read(struct token *token, const char *path, struct error *error);

/* In a time that tells nothing of where they differ. */
bool token_is(const struct token *token, const char *given);

#endif
