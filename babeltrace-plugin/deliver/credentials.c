/*
 * Reading of credentials from files and the environment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source {
    const char *parameter;
    const char *name; /* of the file or the variable */
    enum credential_kind kind;
    bool is_file;
};

#define SOURCES 4

/* Returns how many are given, and the last of them. */
static unsigned given(const struct credential_sources *sources, struct source *source)
{
    const struct source all[SOURCES] = {
        {"bearer-token-file", sources->bearer_file, CREDENTIAL_BEARER, true},
        {"bearer-token-env", sources->bearer_env, CREDENTIAL_BEARER, false},
        {"basic-auth-file", sources->basic_file, CREDENTIAL_BASIC, true},
        {"basic-auth-env", sources->basic_env, CREDENTIAL_BASIC, false},
    };
    unsigned count = 0;

    for (unsigned i = 0; i < SOURCES; i++) {
        if (all[i].name) {
            *source = all[i];
            count++;
        }
    }
    return count;
}

static bool read_file(char *secret, const struct source *source, struct error *error)
{
    const int fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t length = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    int cause;

    while (got > 0 && length < CREDENTIAL_MAX) {
        got = read(fd, secret + length, CREDENTIAL_MAX - length);
        if (got > 0)
            length += (size_t)got;
    }
    cause = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0) {
        error_set(error, "%s \"%s\": cannot read: %s", source->parameter, source->name,
                  strerror(cause));
        return false;
    }
    if (length == CREDENTIAL_MAX) {
        error_set(error, "%s \"%s\": is longer than a credential can be, %d bytes",
                  source->parameter, source->name, CREDENTIAL_MAX - 1);
        return false;
    }
    secret[length] = '\0';
    return true;
}

static bool read_variable(char *secret, const struct source *source, struct error *error)
{
    const char *value = getenv(source->name);

    if (!value || strlen(value) >= CREDENTIAL_MAX) {
        error_set(error, "%s \"%s\": the environment variable is %s", source->parameter,
                  source->name, value ? "longer than a credential can be" : "not set");
        return false;
    }
    strcpy(secret, value);
    return true;
}

/* One line of printable text: anything else in a request's header would end it. */
static bool check(char *secret, const struct source *source, struct error *error)
{
    size_t length = strlen(secret);

    while (length && strchr(" \t\r\n", secret[length - 1]))
        secret[--length] = '\0';
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)secret[i];

        if (byte < 0x20 || byte == 0x7f) {
            error_set(error, "%s \"%s\": expected one line, got a control character",
                      source->parameter, source->name);
            return false;
        }
    }
    if (length == 0) {
        error_set(error, "%s \"%s\": is empty", source->parameter, source->name);
        return false;
    }
    if (source->kind == CREDENTIAL_BASIC && !strchr(secret, ':')) {
        error_set(error, "%s \"%s\": expected USER:PASSWORD", source->parameter, source->name);
        return false;
    }
    return true;
}

bool credential_read(struct credential *credential, const struct credential_sources *sources,
                     struct error *error)
{
    struct source source = {0};
    const unsigned count = given(sources, &source);

    credential->kind = CREDENTIAL_NONE;
    if (count == 0)
        return true;
    if (count > 1) {
        error_set(error, "expected one of bearer-token-file, bearer-token-env, basic-auth-file and "
                         "basic-auth-env, got several");
        return false;
    }
    credential->kind = source.kind;
    if ((source.is_file ? read_file(credential->secret, &source, error)
                        : read_variable(credential->secret, &source, error)) &&
        check(credential->secret, &source, error))
        return true;
    credential_wipe(credential);
    return false;
}

void credential_wipe(struct credential *credential)
{
    credential->kind = CREDENTIAL_NONE;
    explicit_bzero(credential->secret, sizeof(credential->secret));
}
