/* SPDX-License-Identifier: BSD-2-Clause */
#include "credentials.h"

#include "babeltrace-plugin/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes the last source that is set. Returns the number of sources that are set. */
static unsigned credential_choose(struct credential *credential,
                                  const struct credential_sources *sources, const char **name)
{
    const struct {
        const char *parameter, *name;
        enum credential_kind kind;
        bool is_file;
    } all[] = {
        {"bearer-token-file", sources->bearer_file, CREDENTIAL_BEARER, true},
        {"bearer-token-env", sources->bearer_env, CREDENTIAL_BEARER, false},
        {"basic-auth-file", sources->basic_file, CREDENTIAL_BASIC, true},
        {"basic-auth-env", sources->basic_env, CREDENTIAL_BASIC, false},
    };
    unsigned count = 0;

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!all[i].name)
            continue;
        count++;
        *name = all[i].name;
        credential->parameter = all[i].parameter;
        credential->kind = all[i].kind;
        credential->is_file = all[i].is_file;
    }
    return count;
}

/* Removes blanks at the end. A secret is one line of printable text: a control character would end
 * an HTTP header early. */
static bool secret_check(const char *key, const char *source, char *secret, struct error *error)
{
    size_t length = strlen(secret);

    while (length && strchr(" \t\r\n", secret[length - 1]))
        secret[--length] = '\0';
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)secret[i];

        if (byte < 0x20 || byte == 0x7f)
            return error_set(error, "%s \"%s\": expected one line, got a control character", key,
                             source);
    }
    return length != 0 || error_set(error, "%s \"%s\": is empty", key, source);
}

bool secret_read_file(const char *key, const char *path, bool is_private,
                      char secret[CREDENTIAL_MAX], struct error *error)
{
    GUARD_FD const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status = {.st_mode = 0};
    size_t length = 0;
    ssize_t got = fd < 0 || fstat(fd, &status) != 0 ? -1 : 1;

    if (is_private && (status.st_mode & 077))
        return error_set(error,
                         "%s \"%s\": other users may read or write it (mode %03o): chmod 600 it, "
                         "and choose a new password if they may have read it",
                         key, path, (unsigned)status.st_mode & 0777);
    while (got > 0 && length < CREDENTIAL_MAX) {
        got = read(fd, secret + length, CREDENTIAL_MAX - length);
        if (got > 0)
            length += (size_t)got;
    }
    if (got < 0)
        return error_set(error, "%s \"%s\": cannot read: %s", key, path, strerror(errno));
    if (length == CREDENTIAL_MAX)
        return error_set(error, "%s \"%s\": expected a credential of at most %d bytes", key, path,
                         CREDENTIAL_MAX - 1);
    secret[length] = '\0';
    return secret_check(key, path, secret, error);
}

static bool credential_read_variable(const struct credential *from, char *secret,
                                     struct error *error)
{
    const char *value = getenv(from->source);

    if (!value || strlen(value) >= CREDENTIAL_MAX)
        return error_set(error, "%s \"%s\": the environment variable is %s", from->parameter,
                         from->source, value ? "longer than a credential can be" : "not set");
    strcpy(secret, value);
    return secret_check(from->parameter, from->source, secret, error);
}

static bool credential_read(const struct credential *from, char *secret, struct error *error)
{
    if (from->is_file ? !secret_read_file(from->parameter, from->source, false, secret, error)
                      : !credential_read_variable(from, secret, error))
        return false;
    if (from->kind == CREDENTIAL_BASIC && !strchr(secret, ':'))
        return error_set(error, "%s \"%s\": expected USER:PASSWORD", from->parameter, from->source);
    return true;
}

bool credential_open(struct credential *credential, const struct credential_sources *sources,
                     struct error *error)
{
    const char *name = NULL;
    const unsigned count = credential_choose(credential, sources, &name);

    if (count == 0)
        return true;
    if (count > 1)
        return error_set(error,
                         "expected one of bearer-token-file, bearer-token-env, basic-auth-file and "
                         "basic-auth-env, got several");
    error_set(error, "out of memory");
    credential->source = strdup(name);
    return credential->source && credential_read(credential, credential->secret, error);
}

bool credential_renew(struct credential *credential)
{
    char secret[CREDENTIAL_MAX];
    struct error ignored;
    bool is_new = false;

    if (credential->kind != CREDENTIAL_NONE && credential_read(credential, secret, &ignored)) {
        is_new = strcmp(secret, credential->secret) != 0;
        strcpy(credential->secret, secret);
    }
    explicit_bzero(secret, sizeof(secret));
    return is_new;
}

void credential_close(struct credential *credential)
{
    free(credential->source);
    explicit_bzero(credential, sizeof(*credential));
}
