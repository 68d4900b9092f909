/*
 * An answer of an HTTP server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http_answer.h"

#include <stdlib.h>
#include <string.h>

enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status, const char *type,
                            char *text, const struct http_header *headers)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result;

    if (!response) {
        free(text);
        return MHD_NO; /* ends the connection */
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    for (; headers->name; headers++) {
        if (headers->status == 0 || headers->status == status)
            (void)MHD_add_response_header(response, headers->name, headers->value);
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}
