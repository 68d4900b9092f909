/*
 * Any bytes sent to the metrics page get one of the answers there are, the same however they are
 * cut into pieces on their way, and the page only for a request for it.
 *
 *     make $PWD/build/fuzz/fuzz-metrics-request && build/fuzz/fuzz-metrics-request -max_total_time=60
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "account/metrics_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool condition)
{
    if (!condition)
        abort();
}

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
    return size > strlen(method) && memcmp(data, method, strlen(method)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metrics_request whole, first = {0, false};
    size_t length = 0;

    if (size > METRICS_REQUEST_MAX)
        size = METRICS_REQUEST_MAX;
    whole = judge(data, size);
    switch (whole.status) {
    case 200:
        expect(is_for_page(data, size, whole.is_head));
        break;
    case 431:
        expect(size == METRICS_REQUEST_MAX);
        break;
    case 0:
    case 400:
    case 404:
    case 405:
    case 505:
        break;
    default:
        abort();
    }
    /* byte by byte, up to the answer */
    while (length < size && !first.status)
        first = judge(data, ++length);
    expect(first.status == whole.status && first.is_head == whole.is_head);
    return 0;
}
