/*
 * The tokens of all hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tokens.h"

#include "tools/exchange/message.h"
#include "tools/exchange/token.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY  "hub-tokens-file"
#define ROOM (MESSAGE_HOST_MAX + TOKEN_MAX) /* of a line */

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
    if (!message_is_host(host) || !token || strtok_r(NULL, " \t\r\n", &rest)) {
        error_set(error,
                  KEY " \"%s\": expected lines \"HOST TOKEN\", a token of its own for each host",
                  path);
        return false;
    }
    if (!token_check(KEY, path, token, error))
        return false;
    if (add(tokens, host, token))
        return true;
    error_set(error, "out of memory");
    return false;
}

static bool check_all(struct tokens *tokens, const char *path, struct error *error)
{
    if (tokens->count == 0) {
        error_set(error, KEY " \"%s\": expected lines \"HOST TOKEN\", got none", path);
        return false;
    }
    qsort(tokens->list, tokens->count, sizeof(*tokens->list), compare);
    for (size_t i = 1; i < tokens->count; i++) {
        if (compare(&tokens->list[i - 1], &tokens->list[i]) != 0)
            continue;
        error_set(error, KEY " \"%s\": %s and %s have the same token: each host needs its own",
                  path, tokens->list[i - 1].host, tokens->list[i].host);
        return false;
    }
    return true;
}

bool tokens_read(struct tokens *tokens, const char *path, struct error *error)
{
    const int fd = token_open(KEY, path, error);
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

void tokens_free(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        free(tokens->list[i].host);
    free(tokens->list);
    *tokens = (struct tokens){NULL, 0};
}

const char *tokens_host(const struct tokens *tokens, const char *given)
{
    struct host_token key = {.host = NULL};
    const struct host_token *found = NULL;

    if (tokens->count && digest_of(given, key.digest))
        found = bsearch(&key, tokens->list, tokens->count, sizeof(*tokens->list), compare);
    return found ? found->host : NULL;
}
