/*
 * Credentials: where they are, and the secret that was read from there.
 *
 * Parameters name a credential and never hold it: every user of a machine sees a command line.
 * No message has it.
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

/* Zeros are none. */
struct credential {
    enum credential_kind kind;
    const char *parameter; /* that names the source */
    char *source;          /* a copy of the name */
    bool is_file;
    char secret[CREDENTIAL_MAX];
};

/* Reads what sources name, if anything. Returns false with error set. */
bool credential_open(struct credential *credential, const struct credential_sources *sources,
                     struct error *error);

/* Reads it again. Returns whether it is another one now; what cannot be read stays what it was. */
bool credential_renew(struct credential *credential);

/* Overwrites the secret. */
void credential_close(struct credential *credential);

#endif
