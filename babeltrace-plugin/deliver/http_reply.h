/*
 * What a collector's answer means. All of it comes from the network and is untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_HTTP_REPLY_H
#define BLKIN_OUTPUT_HTTP_REPLY_H

#include "babeltrace-plugin/encode/protocol.h"
#include "transport.h"

/* More of an answer than this is not read. */
#define REPLY_MAX (64U << 10)

#define RETRY_AFTER_MAX_MS (600 * INT64_C(1000))

struct http_reply {
    size_t received;       /* of headers and body */
    bool is_head_complete; /* without it there is no status to rely on */
    char type[64];         /* Content-Type, cut off if need be; empty if there is none */
    char body[2048];       /* the first of it: what a message is made of */
    size_t body_length;
};

void http_reply_begin(struct http_reply *reply);

/* A line of the head or a trailer; a part of the body. Both return false if there has been enough
 * of it. */
bool http_reply_header(struct http_reply *reply, const char *line, size_t length);
bool http_reply_body(struct http_reply *reply, const char *data, size_t length);

/*
 * What a final status means, with a message that begins with url. retry_after_s is the header's
 * value, 0 if there is none; it may be any number.
 */
void http_reply_judge(const struct http_reply *answer, const struct protocol *protocol,
                      const char *url, long status, int64_t retry_after_s, struct reply *reply);

#endif
