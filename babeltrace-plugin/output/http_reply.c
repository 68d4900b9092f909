/*
 * Judging of a collector's answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http_reply.h"

void http_reply_begin(struct http_reply *reply)
{
    reply->received = 0;
    reply->is_head_complete = false;
    reply->text_length = 0;
    reply->text[0] = '\0';
}

/*
 * An informational answer has a head of its own, which does not count: the next status line begins
 * anew. Other lines after a whole head are trailers, which change nothing.
 */
bool http_reply_header(struct http_reply *reply, const char *line, size_t length)
{
    static const char status[] = "HTTP/";

    if (length && (line[0] == '\r' || line[0] == '\n'))
        reply->is_head_complete = true;
    else if (length >= sizeof(status) - 1 && memcmp(line, status, sizeof(status) - 1) == 0)
        reply->is_head_complete = false;
    reply->received += length;
    return reply->received <= REPLY_MAX;
}

bool http_reply_body(struct http_reply *reply, const char *data, size_t length)
{
    const size_t room = sizeof(reply->text) - 1 - reply->text_length;
    const size_t kept = length < room ? length : room;

    for (size_t i = 0; i < kept; i++) {
        const unsigned char byte = (unsigned char)data[i];

        /* a terminal shows this: no control characters from the network */
        reply->text[reply->text_length++] = byte < 0x20 || byte >= 0x7f ? ' ' : (char)byte;
    }
    reply->text[reply->text_length] = '\0';
    reply->received += length;
    return reply->received <= REPLY_MAX;
}

static enum delivery delivery_of(long status)
{
    if (status >= 200 && status < 300)
        return DELIVERY_ACCEPTED;
    switch (status) {
    case 400:
        return DELIVERY_INVALID;
    case 413:
        return DELIVERY_TOO_LARGE;
    case 408:
    case 429:
    case 500: /* the OpenTelemetry collector answers it when its queue is full */
    case 502:
    case 503:
    case 504:
        return DELIVERY_RETRY;
    default:
        return DELIVERY_REFUSED;
    }
}

static const char *advice(long status)
{
    switch (status) {
    case 401:
    case 403:
        return "; it wants other credentials: see bearer-token-file and basic-auth-file";
    case 404:
    case 405:
        return "; no collector at this path? Zipkin's is " ZIPKIN_PATH;
    case 413:
        return "; the batch is too large for it: lower batch-bytes";
    default:
        return status >= 300 && status < 400 ? "; redirects are not followed: give the final URL"
                                             : "";
    }
}

static int64_t retry_after_ms(int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < RETRY_AFTER_MAX_MS / 1000 ? seconds * 1000 : RETRY_AFTER_MAX_MS;
}

void http_reply_judge(const struct http_reply *answer, const char *url, long status,
                      int64_t retry_after_s, struct reply *reply)
{
    reply->delivery = delivery_of(status);
    /* 429, 502, 503 and 504 speak of the peer's state, whatever was sent */
    reply->may_be_batch = status == 500 || status == 408;
    reply->retry_after_ms = retry_after_ms(retry_after_s);
    if (reply->delivery != DELIVERY_ACCEPTED)
        error_set(&reply->error, "%s: answered %ld%s%s%s", url, status, advice(status),
                  answer->text_length ? ": " : "", answer->text);
}
