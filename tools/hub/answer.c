/*
 * Answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/account/http_answer.h"

enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                       char *text)
{
    static const struct http_header headers[] = {
        {0, "Cache-Control", "no-store"},
        {MHD_HTTP_UNAUTHORIZED, "WWW-Authenticate", "Bearer"},
        {MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD, POST"},
        {MHD_HTTP_TOO_MANY_REQUESTS, "Retry-After", "1"},
        {0, NULL, NULL},
    };

    return http_answer(connection, status, type, text, headers);
}

enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return answer(connection, status, "application/json", text);
}

enum MHD_Result deny(struct server *server, struct MHD_Connection *connection, unsigned status,
                     const char *why)
{
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        server->counts.unauthorized++;
    else if (status != MHD_HTTP_TOO_MANY_REQUESTS)
        server->counts.malformed++;
    return answer_json(connection, status, json_pack("{ss}", "error", why));
}
