/*
 * Any bytes sent to the metrics page get one of the answers there are, the same however they are
 * cut into pieces on their way, and the page only for a request for it.
 *
 *     make $PWD/build/fuzz/fuzz-metrics-request && build/fuzz/fuzz-metrics-request
 * -max_total_time=60
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "account/metrics_request.h"

#include <string.h>

/* A copy of just that size, so that reading past it is seen. */
static struct metrics_request judge(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    struct metrics_request request;

    if (size)
        memcpy(copy, data, size);
    request = metrics_request_judge(copy, size);
    free(copy);
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

static void check(const uint8_t *data, size_t size)
{
    struct metrics_request whole, first = {0, false};
    size_t length = 0;

    whole = judge(data, size);
    switch (whole.status) {
    case 200:
        REQUIRE(is_for_page(data, size, whole.is_head));
        break;
    case 431:
        REQUIRE(size == METRICS_REQUEST_MAX);
        break;
    case 0:
    case 400:
    case 404:
    case 405:
    case 505:
        break;
    default:
        REQUIRE(!"a status that is not in metrics_request.h");
    }
    /* byte by byte, up to the answer */
    while (length < size && !first.status)
        first = judge(data, ++length);
    REQUIRE(first.status == whole.status && first.is_head == whole.is_head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t request[METRICS_REQUEST_MAX];

    if (size && data[0] == WORDS_FOLLOW)
        check(request, expand(request, data + 1, size - 1));
    else
        check(data, size < METRICS_REQUEST_MAX ? size : METRICS_REQUEST_MAX);
    return 0;
}
