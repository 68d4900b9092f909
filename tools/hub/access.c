/*
 * Who may speak to the hub.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "access.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PEM_MAX (1 << 20)

/* The text of the file that the key names; NULL with error set. */
static char *read_pem(const struct config *config, const char *key, struct error *error)
{
    const char *path = config_text(config, key);
    FILE *file = fopen(path, "re");
    char *text = file ? calloc(1, PEM_MAX + 1) : NULL;

    if (!file) {
        error_set(error, "%s \"%s\": cannot read it: %s", key, path, strerror(errno));
        return NULL;
    }
    if (!text) {
        error_set(error, "out of memory");
    } else if (fread(text, 1, PEM_MAX, file) == 0 || !strstr(text, "-----BEGIN ")) {
        error_set(error, "%s \"%s\": expected PEM, a text with -----BEGIN", key, path);
        free(text);
        text = NULL;
    }
    (void)fclose(file);
    return text;
}

static bool is_given(const struct config *config, const char *key)
{
    const char *text = config_text(config, key);

    return text && *text;
}

static bool read_tls(struct access *access, const struct config *config, struct error *error)
{
    if (is_given(config, "hub-cert-file") != is_given(config, "hub-key-file")) {
        error_set(error, "hub-cert-file and hub-key-file: expected both, or none");
        return false;
    }
    access->is_tls = is_given(config, "hub-cert-file");
    access->wants_certificate = is_given(config, "hub-ca-file");
    if (access->wants_certificate && !access->is_tls) {
        error_set(error, "hub-ca-file: recorders can show a certificate over HTTPS only: expected "
                         "hub-cert-file and hub-key-file of the hub, too");
        return false;
    }
    return !access->is_tls || ((access->cert = read_pem(config, "hub-cert-file", error)) &&
                               (access->key = read_pem(config, "hub-key-file", error)) &&
                               (!access->wants_certificate ||
                                (access->trust = read_pem(config, "hub-ca-file", error))));
}

bool access_open(struct access *access, const struct config *config, struct error *error)
{
    *access = (struct access){.is_tls = false};
    if (is_given(config, "hub-token-file") &&
        !token_read(&access->token, config_text(config, "hub-token-file"), error))
        return false;
    return read_tls(access, config, error);
}

void access_close(struct access *access)
{
    if (access->key)
        explicit_bzero(access->key, strlen(access->key));
    explicit_bzero(&access->token, sizeof(access->token));
    free(access->cert);
    free(access->key);
    free(access->trust);
}

bool access_is_guarded(const struct access *access)
{
    return access->token.text[0] || access->wants_certificate;
}

/* ---- one request ----------------------------------------------------------------------------- */

static bool has_certificate(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned status = 1;

    return info && info->tls_session &&
           gnutls_certificate_verify_peers2((gnutls_session_t)info->tls_session, &status) == 0 &&
           status == 0;
}

static bool has_token(const struct token *token, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

    return given && strncasecmp(given, "Bearer ", 7) == 0 && token_is(token, given + 7);
}

const char *access_denied(const struct access *access, struct MHD_Connection *connection)
{
    if (access->wants_certificate && !has_certificate(connection))
        return "no certificate that this hub trusts: recorders must have one, see hub-cert-file "
               "and hub-key-file";
    if (access->token.text[0] && !has_token(&access->token, connection))
        return "not the hub's token: see hub-token-file";
    return NULL;
}
