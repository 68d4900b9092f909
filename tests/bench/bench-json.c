/*
 * The cost of encoding one typical span as Zipkin JSON; the anchor is copying as many bytes.
 *
 *     make bench    (or: build/tests/bench/bench-json)
 *
 * Prints "NAME LEAST P10 SPREAD". Target: 150 ns at most, measured with nothing else on the core.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "bench.h"
#include "output/protocol.h"
#include "sample_span.h"

#define SPANS 500

static struct span spans[SPANS];
static struct encoder *encoder;
static struct buffer json, copy;

static void encode_all(void *context)
{
    bool cut;

    (void)context;
    json.length = 0;
    for (unsigned i = 0; i < SPANS; i++)
        (void)encoder->encode(encoder, &json, &spans[i], NULL, &cut);
}

/* Span by span, so that both have the loop. */
static void copy_all(void *context)
{
    const size_t length = json.length / SPANS;

    (void)context;
    for (unsigned i = 0; i < SPANS; i++)
        memcpy(copy.data + i * length, json.data + i * length, length);
}

int main(void)
{
    static struct bench bench = {.name = "json", .run = encode_all, .per_batch = SPANS};
    static struct bench anchor = {.name = "json_copy", .run = copy_all, .per_batch = SPANS};

    for (unsigned i = 0; i < SPANS; i++)
        sample_span(&spans[i], i);
    encoder = zipkin_protocol.encoder_new();
    encode_all(NULL);
    if (!encoder || !buffer_reserve(&copy, json.length))
        return 1;
    memset(copy.data, 0, copy.capacity);
    printf("json_bytes %zu %zu 0\n", json.length / SPANS, json.length / SPANS);
    bench_pair(&bench, &anchor);
    return 0;
}
