/*
 * Checks and completes a URL with libcurl's parser: the check and the request read the URL alike.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http_url.h"

#include "utf8.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what of an endpoint is shown ------------------------------------------------------------ */

/* Removes everything up to the last '@' before the path. */
static void remove_user(char *url)
{
    char *host = strstr(url, "//");
    char *at = NULL;

    host = host ? host + 2 : url;
    for (char *c = host; *c && *c != '/'; c++)
        if (*c == '@')
            at = c;
    if (at)
        memmove(host, at + 1, strlen(at + 1) + 1);
}

static void make_printable(char *text)
{
    const bool is_text = utf8_is_valid(text_of(text));

    for (char *c = text; *c; c++) {
        const unsigned char byte = (unsigned char)*c;

        if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !is_text))
            *c = '?';
    }
}

char *endpoint_shown(const char *endpoint)
{
    char *shown = strdup(endpoint);

    if (!shown)
        return NULL;
    if (strncasecmp(shown, "file:", 5) != 0) {
        shown[strcspn(shown, "?#")] = '\0';
        remove_user(shown);
    }
    make_printable(shown);
    return shown;
}

const char *endpoint_unparsed(const char *endpoint)
{
    for (const char *c = endpoint; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || strchr("@?#", *c))
            return "(not shown)";
    }
    return endpoint;
}

/* ---- checking and completing ----------------------------------------------------------------- */

/* expected: NULL for any text except an empty query. */
static bool part_is(CURLU *parsed, CURLUPart part, const char *expected)
{
    char *text = NULL;
    const bool is = curl_url_get(parsed, part, &text, 0) == CURLUE_OK &&
                    (expected ? strcasecmp(text, expected) == 0 : text && text[0]);

    curl_free(text);
    return is;
}

static bool is_loopback(const char *host)
{
    struct in_addr address;

    return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool is_local(CURLU *parsed)
{
    char *host = NULL;
    bool local = false;

    if (curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        local =
            strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || is_loopback(host);
    curl_free(host);
    return local;
}

static CURLUcode complete(CURLU *parsed, const char *path, struct http_url *url)
{
    char *text = NULL;
    CURLUcode code = CURLUE_OK;

    if (*path && part_is(parsed, CURLUPART_PATH, "/") && !part_is(parsed, CURLUPART_QUERY, NULL))
        code = curl_url_set(parsed, CURLUPART_PATH, path, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parsed, CURLUPART_URL, &text, 0);
    if (code == CURLUE_OK) {
        url->text = strdup(text);
        url->shown = endpoint_shown(text);
        if (!url->text || !url->shown)
            code = CURLUE_OUT_OF_MEMORY;
    }
    curl_free(text);
    return code;
}

static const char *reason(CURLUcode code)
{
#if LIBCURL_VERSION_NUM >= 0x075000
    return curl_url_strerror(code);
#else
    return code == CURLUE_OUT_OF_MEMORY ? "out of memory" : "not a URL";
#endif
}

bool http_url_parse(struct http_url *url, const char *path, const char *endpoint,
                    struct error *error)
{
    CURLU *parsed = curl_url();
    CURLUcode code =
        parsed ? curl_url_set(parsed, CURLUPART_URL, endpoint, 0) : CURLUE_OUT_OF_MEMORY;

    *url = (struct http_url){0};
    if (code == CURLUE_OK &&
        (part_is(parsed, CURLUPART_USER, NULL) || part_is(parsed, CURLUPART_PASSWORD, NULL))) {
        /* the URL is not shown: it contains the password */
        error_set(error, "endpoint: the URL holds credentials, which all users of this machine can "
                         "see: move them to basic-auth-file or basic-auth-env");
        curl_url_cleanup(parsed);
        return false;
    }
    if (code == CURLUE_OK) {
        url->is_local = is_local(parsed);
        url->is_plain = part_is(parsed, CURLUPART_SCHEME, "http");
        code = complete(parsed, path, url);
    }
    curl_url_cleanup(parsed);
    return code == CURLUE_OK ||
           error_set(error, "endpoint \"%s\": expected http://HOST[:PORT]%s: %s",
                     endpoint_unparsed(endpoint), path, reason(code));
}

void http_url_free(struct http_url *url)
{
    free(url->text);
    free(url->shown);
    url->text = url->shown = NULL;
}
