/*
 * What of an endpoint is shown.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "endpoint_shown.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

static bool is_url(const char *endpoint)
{
    return strncasecmp(endpoint, "file:", 5) != 0;
}

/* Takes out everything up to the last '@' before the path. */
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

/* As jansson sees it; without memory nothing is. */
static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    const bool is_valid = string != NULL;

    json_decref(string);
    return is_valid;
}

static void make_printable(char *text)
{
    const bool is_text = is_utf8(text);

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
    if (is_url(shown)) {
        shown[strcspn(shown, "?#")] = '\0';
        remove_user(shown);
    }
    make_printable(shown);
    return shown;
}
