/*
 * The meaning of a collector's answer. The answer comes from the network and is untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_HTTP_REPLY_H
#define BLKIN_DELIVER_HTTP_REPLY_H

#include "babeltrace-plugin/encode/encoder.h"
#include "transport.h"

/* The longest answer. */
#define REPLY_MAX (64U << 10)

#define RETRY_AFTER_MAX_MS (600 * INT64_C(1000))

struct http_reply {
    size_t received;       /* of headers and body */
    bool is_head_complete; /* false: the status does not count */
    const char *type;      /* Content-Type, set by the caller; NULL: none */
    char body[2048];       /* the beginning of the body, for messages */
    size_t body_length;
};

void http_reply_begin(struct http_reply *reply);

/* Take a line of the head, a trailer, or a part of the body. Both are callbacks of libcurl, with
 * the reply as context. Return 0 if the answer is too long. */
size_t http_reply_header(char *line, size_t size, size_t count, void *reply);
size_t http_reply_body(char *data, size_t size, size_t count, void *reply);

/* Judges a final status, with a message that begins with url. retry_after_s is the value of the
 * header, any number; 0: no header. */
void http_reply_judge(const struct http_reply *answer, const struct protocol *protocol,
                      const char *url, long status, int64_t retry_after_s,
                      struct transport_reply *reply);

#endif
