/*
 * Who may speak to the hub.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "access.h"

#include "tools/exchange/message.h"
#include "tools/exchange/token.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX    (1 << 20)
#define TOKENS_KEY "hub-tokens-file"
#define ROOM       (MESSAGE_HOST_MAX + TOKEN_MAX) /* of a line */

/* ---- the tokens of all hosts ----------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, TOKEN_DIGEST); /* each begins with its digest */
}

static bool digest_of(const char *token, uint8_t digest[TOKEN_DIGEST])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), digest) == 0;
}

static bool add(struct tokens *tokens, const char *host, const char *token)
{
    struct host_token *more = reallocarray(tokens->list, tokens->count + 1, sizeof(*more));

    if (!more)
        return false;
    tokens->list = more;
    more += tokens->count;
    more->host = strdup(host);
    tokens->count += more->host != NULL;
    return more->host && digest_of(token, more->digest);
}

/* Blank lines and such with # are passed over. */
static bool read_line(struct tokens *tokens, char *line, const char *path, struct error *error)
{
    char *rest = NULL;
    const char *host = strtok_r(line, " \t\r\n", &rest);
    const char *token = strtok_r(NULL, " \t\r\n", &rest);

    if (!host || *host == '#')
        return true;
    if (!message_is_host(host) || !token || strtok_r(NULL, " \t\r\n", &rest))
        return error_set(error,
                         TOKENS_KEY
                         " \"%s\": expected lines \"HOST TOKEN\", a token of its own for each host",
                         path);
    if (!token_check(TOKENS_KEY, path, token, error))
        return false;
    if (add(tokens, host, token))
        return true;
    return error_set(error, "out of memory");
}

static bool check_all(struct tokens *tokens, const char *path, struct error *error)
{
    if (tokens->count == 0)
        return error_set(error, TOKENS_KEY " \"%s\": expected lines \"HOST TOKEN\", got none",
                         path);
    qsort(tokens->list, tokens->count, sizeof(*tokens->list), compare);
    for (size_t i = 1; i < tokens->count; i++) {
        if (compare(&tokens->list[i - 1], &tokens->list[i]) != 0)
            continue;
        return error_set(
            error, TOKENS_KEY " \"%s\": %s and %s have the same token: each host needs its own",
            path, tokens->list[i - 1].host, tokens->list[i].host);
    }
    return true;
}

/* Returns false with error set. tokens_free() is due in both cases. */
static bool tokens_read(struct tokens *tokens, const char *path, struct error *error)
{
    const int fd = token_open(TOKENS_KEY, path, error);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char line[ROOM];
    bool is_right = file != NULL;

    if (fd >= 0 && !file) {
        error_set(error, "out of memory");
        close(fd);
    }
    while (is_right && fgets(line, sizeof(line), file))
        is_right = read_line(tokens, line, path, error);
    explicit_bzero(line, sizeof(line));
    if (file)
        (void)fclose(file);
    return is_right && check_all(tokens, path, error);
}

static void tokens_free(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        free(tokens->list[i].host);
    free(tokens->list);
    *tokens = (struct tokens){NULL, 0};
}

/* The host of this token; NULL: there is no such token. */
static const char *tokens_host(const struct tokens *tokens, const char *given)
{
    struct host_token key = {.host = NULL};
    const struct host_token *found = NULL;

    if (tokens->count && digest_of(given, key.digest))
        found = bsearch(&key, tokens->list, tokens->count, sizeof(*tokens->list), compare);
    return found ? found->host : NULL;
}

/* ---- configuration --------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a FIFO would wait for its writer, and the hub would never start. */
static FILE *open_file(const char *key, const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    FILE *file = NULL;
    struct stat status;

    if (fd < 0)
        return error_null(error, "%s \"%s\": cannot read it: %s", key, path, strerror(errno));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        error_set(error, "%s \"%s\": expected a file", key, path);
    else if (!(file = fdopen(fd, "r")))
        error_set(error, "out of memory");
    if (!file)
        close(fd);
    return file;
}

/* The text of the file that the key names; NULL with error set. */
static char *read_pem(const struct config *config, const char *key, struct error *error)
{
    const char *path = config_text(config, key);
    FILE *file = open_file(key, path, error);
    char *text = file ? calloc(1, PEM_MAX + 1) : NULL;

    if (!file)
        return NULL;
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
    if (is_given(config, "hub-cert-file") != is_given(config, "hub-key-file"))
        return error_set(error, "hub-cert-file and hub-key-file: expected both, or none");
    access->is_tls = is_given(config, "hub-cert-file");
    access->wants_certificate = is_given(config, "hub-ca-file");
    if (access->wants_certificate && !access->is_tls)
        return error_set(error,
                         "hub-ca-file: recorders can show a certificate over HTTPS only: expected "
                         "hub-cert-file and hub-key-file of the hub, too");
    return !access->is_tls || ((access->cert = read_pem(config, "hub-cert-file", error)) &&
                               (access->key = read_pem(config, "hub-key-file", error)) &&
                               (!access->wants_certificate ||
                                (access->trust = read_pem(config, "hub-ca-file", error))));
}

bool access_open(struct access *access, const struct config *config, struct error *error)
{
    *access = (struct access){.is_tls = false};
    if (is_given(config, "hub-tokens-file") &&
        !tokens_read(&access->tokens, config_text(config, "hub-tokens-file"), error))
        return false;
    return read_tls(access, config, error);
}

void access_close(struct access *access)
{
    if (access->key)
        explicit_bzero(access->key, strlen(access->key));
    tokens_free(&access->tokens);
    free(access->cert);
    free(access->key);
    free(access->trust);
}

bool access_is_guarded(const struct access *access)
{
    return access->tokens.count || access->wants_certificate;
}

/* ---- one request ----------------------------------------------------------------------------- */

static gnutls_session_t tls_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    return info ? (gnutls_session_t)info->tls_session : NULL;
}

/* Only subjectAltName counts, without wildcards: who signs a certificate has meant this host. */
static bool names_host(gnutls_x509_crt_t certificate, const char *host)
{
    char name[512];
    size_t size = sizeof(name);
    int type;

    for (unsigned i = 0;
         (type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, NULL)) !=
         GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
         i++) {
        if (type == GNUTLS_SAN_DNSNAME && size == strlen(host) &&
            strncasecmp(name, host, size) == 0)
            return true;
        size = sizeof(name);
    }
    return false;
}

static bool is_of_host(gnutls_session_t tls, const char *host)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls, &count);
    gnutls_x509_crt_t certificate;
    bool is_so;

    if (!chain || !count || gnutls_x509_crt_init(&certificate) != 0)
        return false;
    is_so = gnutls_x509_crt_import(certificate, chain, GNUTLS_X509_FMT_DER) == 0 &&
            names_host(certificate, host);
    gnutls_x509_crt_deinit(certificate);
    return is_so;
}

static unsigned lacks_certificate(struct MHD_Connection *connection, const char *host,
                                  const char **why)
{
    gnutls_session_t tls = tls_of(connection);
    unsigned status = 1;

    if (!tls || gnutls_certificate_verify_peers2(tls, &status) != 0 || status != 0) {
        *why = "expected a certificate that this hub trusts: set hub-cert-file and hub-key-file of "
               "the recorder";
        return MHD_HTTP_UNAUTHORIZED;
    }
    if (!host || is_of_host(tls, host))
        return 0;
    *why = "the certificate is not this host's: its subjectAltName must have DNS: and the host's "
           "name";
    return MHD_HTTP_FORBIDDEN;
}

static unsigned lacks_token(const struct tokens *tokens, struct MHD_Connection *connection,
                            const char *host, const char **why)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    const char *owner =
        given && strncasecmp(given, "Bearer ", 7) == 0 ? tokens_host(tokens, given + 7) : NULL;

    if (!owner) {
        *why = "this hub does not know the token: check hub-token-file of the recorder";
        return MHD_HTTP_UNAUTHORIZED;
    }
    if (!host || strcmp(owner, host) == 0)
        return 0;
    *why = "the token belongs to another host: hub-tokens-file of the hub has a line for each host";
    return MHD_HTTP_FORBIDDEN;
}

unsigned access_denied(const struct access *access, struct MHD_Connection *connection,
                       const char *host, const char **why)
{
    unsigned denied = 0;

    if (access->wants_certificate)
        denied = lacks_certificate(connection, host, why);
    if (!denied && access->tokens.count)
        denied = lacks_token(&access->tokens, connection, host, why);
    return denied;
}

/* ---- web pages ------------------------------------------------------------------------------- */

/* An address, localhost, or this host's name: a name that somebody else has made for our address
 * is that of a page which pretends to be ours. */
static bool is_our_name(const char *host)
{
    char name[256] = "", ours[256] = "";
    struct in6_addr address;
    size_t length = strcspn(host, ":");

    if (*host == '[') {
        length = strcspn(host, "]");
        host++;
        length -= length > 0;
    }
    if (length >= sizeof(name) || gethostname(ours, sizeof(ours) - 1) != 0)
        return false;
    memcpy(name, host, length);
    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 ||
           strcasecmp(name, "localhost") == 0 || strcasecmp(name, ours) == 0;
}

/* What a browser says of where the request comes from; "none": of its user. */
static bool is_of_other_site(struct MHD_Connection *connection)
{
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
}

unsigned access_from_page(const struct access *access, struct MHD_Connection *connection,
                          bool has_effect, const char **why)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type");

    if (MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin") ||
        is_of_other_site(connection)) {
        *why = "this request comes from a web page: the hub answers recorders only";
        return MHD_HTTP_FORBIDDEN;
    }
    /* who must show a token or a certificate needs no name: no page has these */
    if (!access_is_guarded(access) && (!host || !is_our_name(host))) {
        *why = "expected the hub's address, or the name of its host, in the URL";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    /* a page cannot send this type before it has asked with OPTIONS, which this hub denies */
    if (has_effect && (!type || strcasecmp(type, "application/json") != 0)) {
        *why = "expected Content-Type: application/json";
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    return 0;
}
