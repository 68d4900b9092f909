/*
 * The cost of encoding one typical span as Zipkin JSON; the anchor is copying as many bytes. Then
 * of the same spans as OTLP, up to a batch that can be sent; the anchor is the JSON of these.
 *
 *     make bench    (or: build/bench/bench-json)
 *
 * Prints "NAME LEAST P10 SPREAD". Targets, measured with nothing else on the core: 150 ns at most
 * for JSON, and 0.8 of JSON's time for OTLP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "bench.h"
#include "babeltrace-plugin/deliver/body.h"
#include "babeltrace-plugin/encode/protocol.h"
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

static struct encoder *otlp;
static struct body body;

static void encode_otlp(void *context)
{
    struct framed framed;
    bool cut;

    (void)context;
    body_reset(&body);
    for (unsigned i = 0; i < SPANS; i++)
        (void)body_add(&body, otlp, &spans[i], &cut);
    body_frame(&body, otlp, 0, SPANS, &framed);
    body_unframe(otlp, &framed);
}

/* The same steps. */
static struct body json_body;

static void encode_json(void *context)
{
    struct framed framed;
    bool cut;

    (void)context;
    body_reset(&json_body);
    for (unsigned i = 0; i < SPANS; i++)
        (void)body_add(&json_body, encoder, &spans[i], &cut);
    body_frame(&json_body, encoder, 0, SPANS, &framed);
    body_unframe(encoder, &framed);
}

int main(void)
{
    static struct bench binary = {.name = "otlp", .run = encode_otlp, .per_batch = SPANS};
    static struct bench again = {.name = "otlp_json", .run = encode_json, .per_batch = SPANS};
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
    otlp = otlp_protocol.encoder_new();
    if (!otlp)
        return 1;
    bench_pair(&binary, &again);
    printf("otlp_bytes %zu %zu 0\n", body.buffer.length / SPANS, body.buffer.length / SPANS);
    return 0;
}
