/*
 * Credentials: the name of a file or environment variable, and the secret read from there.
 *
 * Every user of a machine sees a command line, so a parameter names a source and never contains the
 * secret. No message contains the secret.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_CREDENTIALS_H
#define BLKIN_DELIVER_CREDENTIALS_H

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

/* All zeros: no credential. */
struct credential {
    enum credential_kind kind;
    const char *parameter; /* the parameter that names the source */
    char *source;          /* a copy of the name */
    bool is_file;
    char secret[CREDENTIAL_MAX];
};

/* Reads a secret: one line of printable text; blanks at its end are removed. key: for messages.
 * is_private: refuses a file that other users may read or write. Returns false with error set. */
bool secret_read_file(const char *key, const char *path, bool is_private,
                      char secret[CREDENTIAL_MAX], struct error *error);

/* Reads the credential if a source is set. Returns false with error set. */
bool credential_open(struct credential *credential, const struct credential_sources *sources,
                     struct error *error);

/* Reads the credential again. Returns whether the secret changed. After a read error the old secret
 * stays. */
bool credential_renew(struct credential *credential);

/* Overwrites the secret, and frees the name of its source. */
void credential_close(struct credential *credential);

#endif
