/*
 * Fuzzes the judgement of a collector's answer. The outcome agrees with the status, the message is
 * a text that a terminal can show, and no pause is longer than the limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/deliver/http_reply.h"
#include "babeltrace-plugin/deliver/send.h"

#include <string.h>

#define URL "http://collector:9411/api/v2/spans"

/* Returns a status with a meaning, a number next to such a status, or any number. */
static long take_status(struct fuzz *source)
{
    static const long known[] = {200, 202, 299, 300, 304, 400, 401, 403, 404, 405, 408,
                                 413, 415, 429, 499, 500, 501, 502, 503, 504, 100, 0};
    const uint8_t which = (uint8_t)take(source, 1);

    return which < sizeof(known) / sizeof(known[0]) ? known[which] : (long)take(source, 8);
}

/* Feeds pieces as libcurl gives them: not terminated, and of exact size, so that AddressSanitizer
 * finds reads beyond the end. */
static void feed(struct http_reply *answer, struct fuzz *source)
{
    static struct fenced piece;
    bool is_accepted = true;
    size_t given = 0;

    while (source->at < source->end && is_accepted) {
        const uint8_t how = (uint8_t)take(source, 1);
        const size_t wanted = how >= 0xf0 ? 20000 : how >> 1 & 63;
        const struct text kept = take_bytes(source, wanted);

        memset(piece.bytes + kept.length, 'x', wanted - kept.length);
        memcpy(piece.bytes, kept.data, kept.length);
        fence_put(&piece, wanted);
        is_accepted = wanted == (how & 1 ? http_reply_header(piece.bytes, 1, wanted, answer)
                                         : http_reply_body(piece.bytes, 1, wanted, answer));
        fence_lift(&piece, wanted);
        given += wanted;
        REQUIRE(answer->received == given && is_accepted == (given <= REPLY_MAX));
    }
}

static void check_kept(const struct http_reply *answer)
{
    REQUIRE(answer->body_length <= sizeof(answer->body));
}

static void check_message(const struct error *error, const char *begin)
{
    const size_t length = strnlen(error->text, sizeof(error->text));

    REQUIRE(length < sizeof(error->text));
    REQUIRE(strncmp(error->text, begin, strlen(begin)) == 0);
    for (size_t i = 0; i < length; i++)
        REQUIRE(error->text[i] >= 0x20 && error->text[i] < 0x7f);
}

static void check_outcome(const struct transport_reply *reply, const struct protocol *protocol,
                          long status)
{
    const bool is_good = status >= 200 && status <= 299;
    const bool is_stranger = is_good && reply->outcome == OUTCOME_AGAIN; /* such as a login page */

    REQUIRE((reply->outcome == OUTCOME_ACCEPTED) == (is_good && !is_stranger));
    REQUIRE((reply->outcome == OUTCOME_INVALID) == (status == 400));
    REQUIRE((reply->outcome == OUTCOME_TOO_LARGE) == (status == 413));
    REQUIRE(!reply->rejected || (is_good && protocol == &otlp_protocol && reply->error.text[0]));
    if (protocol == &otlp_protocol) /* as OTLP's specification requires */
        REQUIRE((reply->outcome == OUTCOME_AGAIN) ==
                (is_stranger || status == 429 || (status >= 502 && status <= 504)));
    if (reply->outcome == OUTCOME_AGAIN)
        REQUIRE(is_stranger || status == 408 || status == 429 || (status >= 500 && status <= 504));
    if (reply->may_be_batch)
        REQUIRE(reply->outcome == OUTCOME_AGAIN);
    if (status == 429 || status == 503) /* a busy peer is never a reason to lose spans */
        REQUIRE(reply->outcome == OUTCOME_AGAIN && !reply->may_be_batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};
    const long status = take_status(&source);
    const int64_t retry_after_s = (int64_t)take(&source, 8);
    const struct protocol *protocol = take(&source, 1) & 1 ? &otlp_protocol : &zipkin_protocol;
    char type_text[64] = "";
    struct http_reply answer;
    struct transport_reply reply;
    struct text type;

    random_number = hash_of(data, size);
    memset(&answer, 0xa5, sizeof(answer));
    memset(&reply, 0xa5, sizeof(reply));
    http_reply_begin(&answer);
    check_kept(&answer);
    type = take_bytes(&source, take(&source, 1) & 63);
    memcpy(type_text, type.data, type.length);
    answer.type = type.length ? type_text : NULL;
    feed(&answer, &source);
    check_kept(&answer);
    http_reply_judge(&answer, protocol, URL, status, retry_after_s, &reply);
    check_outcome(&reply, protocol, status);
    REQUIRE(reply.retry_after_ms >= 0 && reply.retry_after_ms <= RETRY_AFTER_MAX_MS);
    REQUIRE((reply.retry_after_ms == 0) == (retry_after_s <= 0));
    if (reply.outcome != OUTCOME_ACCEPTED)
        check_message(&reply.error, URL ": answered ");
    else if (reply.error.text[0])
        check_message(&reply.error, URL ": ");
    return 0;
}
