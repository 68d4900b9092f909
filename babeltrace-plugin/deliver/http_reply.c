/* SPDX-License-Identifier: BSD-2-Clause */
#include "http_reply.h"

#include <stdio.h>

void http_reply_begin(struct http_reply *reply)
{
    reply->received = 0;
    reply->is_head_complete = false;
    reply->type = NULL;
    reply->body_length = 0;
}

/*
 * The status of an informational answer (1xx) does not count: the next status line begins another
 * head. Other lines after a whole head are trailers, which add only to the length.
 */
size_t http_reply_header(char *line, size_t size, size_t count, void *context)
{
    static const char status[] = "HTTP/";
    const size_t length = size * count;
    struct http_reply *reply = context;

    if (length && (line[0] == '\r' || line[0] == '\n'))
        reply->is_head_complete = true;
    else if (length >= sizeof(status) - 1 && memcmp(line, status, sizeof(status) - 1) == 0)
        reply->is_head_complete = false;
    reply->received += length;
    return reply->received <= REPLY_MAX ? length : 0;
}

size_t http_reply_body(char *data, size_t size, size_t count, void *context)
{
    struct http_reply *reply = context;
    const size_t length = size * count, room = sizeof(reply->body) - reply->body_length;
    const size_t kept = length < room ? length : room;

    memcpy(reply->body + reply->body_length, data, kept);
    reply->body_length += kept;
    reply->received += length;
    return reply->received <= REPLY_MAX ? length : 0;
}

static bool reply_is_among(const short *statuses, long status)
{
    while (*statuses && *statuses != status)
        statuses++;
    return *statuses != 0;
}

static enum outcome reply_outcome_of(const struct protocol *protocol, long status)
{
    if (status >= 200 && status < 300)
        return OUTCOME_ACCEPTED;
    if (status == 400)
        return OUTCOME_INVALID;
    if (status == 413)
        return OUTCOME_TOO_LARGE;
    return reply_is_among(protocol->again, status) ? OUTCOME_AGAIN : OUTCOME_REFUSED;
}

#define ADVICE_MAX 128

static void reply_advise(const struct protocol *protocol, long status, char advice[ADVICE_MAX])
{
    const char *text = "";

    if (status == 401 || status == 403)
        text = "; the collector needs valid credentials: see bearer-token-file and basic-auth-file";
    else if (status == 413)
        text = "; the batch is too large: lower batch-bytes";
    else if (status >= 300 && status < 400)
        text = "; redirects are not followed: give the final URL";
    snprintf(advice, ADVICE_MAX, "%s", text);
    if (status == 404 || status == 405)
        snprintf(advice, ADVICE_MAX, "; check the path: %s has %s", protocol->peer, protocol->path);
}

#define SAID_MAX 256

/* Replaces each byte that is not printable ASCII by a blank, because a terminal shows the text. */
static void reply_make_printable(struct text text, char said[SAID_MAX])
{
    size_t length = 0;

    for (size_t i = 0; i < text.length && length < SAID_MAX - 1; i++) {
        const unsigned char byte = (unsigned char)text.data[i];

        said[length++] = byte < 0x20 || byte >= 0x7f ? ' ' : (char)byte;
    }
    said[length] = '\0';
}

/* Judges an answer that is not a collector's, such as a login page. A proxy may send such a page
 * for a while, so the sender retries. */
static void reply_judge_stranger(const struct http_reply *answer, const struct protocol *protocol,
                                 const char *url, long status, struct transport_reply *reply)
{
    char type[SAID_MAX];

    reply_make_printable(text_of(answer->type), type);
    reply->outcome = OUTCOME_AGAIN;
    error_set(&reply->error,
              "%s: answered %ld with %s, but not as %s does: correct the parameter endpoint", url,
              status, type[0] ? type : "a body of no type", protocol->peer);
}

/* The peer accepted the batch, but may refuse some of its spans, or add a remark. */
static void reply_judge_accepted(const struct http_reply *answer, const struct protocol *protocol,
                                 const char *url, struct transport_reply *reply)
{
    const struct text body = {answer->body, answer->body_length};
    struct rejection rejection = {.spans = 0};
    char said[SAID_MAX];

    if (protocol->rejected)
        protocol->rejected(body, &rejection);
    reply->rejected = rejection.spans;
    reply->error.text[0] = '\0';
    if (!rejection.spans && !rejection.why.length)
        return;
    reply_make_printable(rejection.why, said);
    error_set(&reply->error, "%s: %s", url, said[0] ? said : "the collector does not say why");
}

void http_reply_judge(const struct http_reply *answer, const struct protocol *protocol,
                      const char *url, long status, int64_t retry_after_s,
                      struct transport_reply *reply)
{
    struct text body = {answer->body, answer->body_length};
    char advice[ADVICE_MAX], said[SAID_MAX];

    *reply = (struct transport_reply){
        .outcome = reply_outcome_of(protocol, status),
        .may_be_batch = reply_is_among(protocol->suspect, status),
        .retry_after_ms = retry_after_s <= 0                          ? 0
                          : retry_after_s < RETRY_AFTER_MAX_MS / 1000 ? retry_after_s * 1000
                                                                      : RETRY_AFTER_MAX_MS,
    };
    if (reply->outcome == OUTCOME_ACCEPTED &&
        !protocol->is_answer(status, text_of(answer->type), body)) {
        reply_judge_stranger(answer, protocol, url, status, reply);
        return;
    }
    if (reply->outcome == OUTCOME_ACCEPTED) {
        reply_judge_accepted(answer, protocol, url, reply);
        return;
    }
    if (protocol->reason)
        body = protocol->reason(body);
    reply_make_printable(body, said);
    reply_advise(protocol, status, advice);
    error_set(&reply->error, "%s: answered %ld%s%s%s", url, status, advice, said[0] ? ": " : "",
              said);
}
