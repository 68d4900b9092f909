/*
 * An answer of an HTTP server by libmicrohttpd.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_HTTP_ANSWER_H
#define BLKIN_ACCOUNT_HTTP_ANSWER_H

#include <microhttpd.h>

struct http_header {
    unsigned status; /* of answers that have it; 0: all */
    const char *name, *value;
};

/* Frees the text. NULL, for want of memory, ends the connection. The headers end with a name of
 * NULL. */
enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status, const char *type,
                            char *text, const struct http_header *headers);

#endif
