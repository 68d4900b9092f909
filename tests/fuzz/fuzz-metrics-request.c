/*
 * Any bytes sent to the metrics page get one of the answers there are, the same however they are
 * cut into pieces on their way, and the page only for a request for it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/account/metrics_request.h"

#include <string.h>

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static struct fenced copy;

/* As if so much of it had come; reading past that is seen. */
static struct metrics_request judge(size_t length)
{
    struct metrics_request request;

    fence_put(&copy, length);
    request = metrics_request_judge(copy.bytes, length);
    fence_lift(&copy, length);
    return request;
}

static bool is_for_page(const uint8_t *data, size_t size, bool is_head)
{
    const char *method = is_head ? "HEAD /metrics" : "GET /metrics";

    while (size && (*data == '\r' || *data == '\n')) {
        data++;
        size--;
    }
    return size > strlen(method) && memcmp(data, method, strlen(method)) == 0 &&
           (data[strlen(method)] == ' ' || data[strlen(method)] == '?');
}

/* An input that begins so is made of these words and of what else there is in it. */
#define WORDS_FOLLOW 1

static size_t expand(uint8_t *request, const uint8_t *data, size_t size)
{
    static const char *const words[] = {
        "GET",
        "HEAD",
        "POST",
        " ",
        "/metrics",
        "/",
        "?",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/2.0",
        "\r\n",
        "\n",
        "\r\n\r\n",
        "\n\n",
        "Host: x",
        "\0",
        "GET /metrics HTTP/1.1\r\n",
    };
    size_t length = 0;

    for (size_t i = 0; i < size && length + 32 < METRICS_REQUEST_MAX; i++) {
        const char *word = data[i] < sizeof(words) / sizeof(words[0]) ? words[data[i]] : NULL;

        if (word && word[0]) {
            memcpy(request + length, word, strlen(word));
            length += strlen(word);
        } else {
            request[length++] = word ? 0 : data[i];
        }
    }
    return length;
}

/* The first so many bytes: no answer yet, or the one there will be; an answer is not taken back. */
static void check_part(size_t length, const struct metrics_request *whole, bool *is_answered)
{
    const struct metrics_request part = judge(length);

    if (part.status)
        REQUIRE(part.status == whole->status && part.is_head == whole->is_head);
    REQUIRE(part.status || !*is_answered);
    *is_answered = part.status != 0;
}

/* Cut after each byte; or, as a long one would take long, at line ends and after each step-th. */
static void check_parts(const uint8_t *data, size_t size, const struct metrics_request *whole)
{
    const size_t step = size <= 32 || (size <= 512 && is_one_in(50, data, size)) ? 1 : size / 16;
    size_t next = 1 + size % step;
    bool is_answered = false;

    for (size_t length = 1; length < size; length++) {
        const bool at_line_end = data[length - 1] == '\n' || data[length - 1] == '\r' ||
                                 data[length] == '\n' || length == 1;

        if (length < next && !(at_line_end && length < 512))
            continue;
        check_part(length, whole, &is_answered);
        if (length >= next)
            next += step;
    }
}

static void check(const uint8_t *data, size_t size)
{
    struct metrics_request whole;

    if (size)
        memcpy(copy.bytes, data, size);
    whole = judge(size);
    switch (whole.status) {
    case 200:
        REQUIRE(is_for_page(data, size, whole.is_head));
        break;
    case 431:
        REQUIRE(size == METRICS_REQUEST_MAX);
        break;
    case 0:
        REQUIRE(size < METRICS_REQUEST_MAX);
        break;
    case 400:
    case 404:
    case 405:
    case 505:
        break;
    default:
        REQUIRE(!"a status that is not in metrics_request.h");
    }
    check_parts(data, size, &whole);
}

/* Seldom, as it is slow: a request that goes on up to the length that is refused. */
static size_t lengthen(uint8_t *request, size_t length)
{
    const size_t full = METRICS_REQUEST_MAX - length % 3;

    if (!is_one_in(1009, request, length))
        return length;
    for (size_t i = length; i < full; i++)
        request[i] = request[i - length];
    return full;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t request[METRICS_REQUEST_MAX];
    size_t length;

    if (size && data[0] == WORDS_FOLLOW) {
        length = expand(request, data + 1, size - 1);
    } else {
        length = size < METRICS_REQUEST_MAX ? size : METRICS_REQUEST_MAX;
        if (length)
            memcpy(request, data, length);
    }
    check(request, lengthen(request, length));
    return 0;
}

#pragma clang attribute pop
