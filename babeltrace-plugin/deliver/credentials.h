/*
 * Credentials: where they are, and what they are once they have been read.
 *
 * They are named, never given, in parameters: a command line is seen by every user of a machine.
 * Nothing here or in http.c writes them to a message.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_CREDENTIALS_H
#define BLKIN_OUTPUT_CREDENTIALS_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

enum credential_kind {
    CREDENTIAL_NONE,
    CREDENTIAL_BEARER, /* a token */
    CREDENTIAL_BASIC,  /* user:password */
};

/* At most one is not NULL: the name of a file or of an environment variable. */
struct credential_sources {
    const char *bearer_file;
    const char *bearer_env;
    const char *basic_file;
    const char *basic_env;
};

#define CREDENTIAL_MAX 8192

struct credential {
    enum credential_kind kind;
    char secret[CREDENTIAL_MAX];
};

/* Reads what sources name, if anything. Returns false with error set. */
bool credential_read(struct credential *credential, const struct credential_sources *sources,
                     struct error *error);

/* Overwrites the secret. */
void credential_wipe(struct credential *credential);

#endif
