/*
 * Answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include <stdlib.h>
#include <string.h>

enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                       char *text)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result;

    if (!response) {
        free(text);
        return MHD_NO; /* ends the connection: its owner tries again */
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD, POST");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
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
