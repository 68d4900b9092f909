/*
 * The cost of encoding one typical span as Zipkin JSON; the anchor is copying as many bytes. Then
 * the cost of a whole batch of spans as OTLP, with its frame; the anchor is its JSON.
 *
 *     make bench    (or: build/bench/bench-json)
 *
 * Prints "run TURN PASS NAME NS", and sizes as "NAME BYTES". Targets, measured with nothing else on
 * the core: 150 ns at most for JSON, and 0.8 of JSON's time for OTLP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"
#include "babeltrace-plugin/deliver/body.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "sample_span.h"

#include <stdio.h>
#include <string.h>

#define SPANS 500

static struct span spans[SPANS];
static struct encoder *json, *otlp;
static struct buffer text, copy;
static size_t span_bytes;

static void encode_all(unsigned calls)
{
    bool cut;

    if (calls)
        text.length = 0;
    for (unsigned i = 0; i < calls; i++)
        (void)json->encode(json, &text, &spans[i], NULL, &cut);
}

/* Copies span by span, so that both sides have the same loop. */
static void copy_all(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        memcpy(copy.data + i * span_bytes, text.data + i * span_bytes, span_bytes);
}

static size_t encode_body(struct body *body, struct encoder *encoder, unsigned calls)
{
    struct framed framed;
    bool cut;

    if (!calls)
        return 0;
    body_reset(body);
    for (unsigned i = 0; i < calls; i++)
        (void)body_add(body, encoder, &spans[i], &cut);
    body_frame((struct body_run){.body = body, .end = calls}, encoder, &framed);
    body_unframe(encoder, &framed);
    return body->buffer.length;
}

static void encode_otlp(unsigned calls)
{
    static struct body body;

    (void)encode_body(&body, otlp, calls);
}

static void encode_json(unsigned calls)
{
    static struct body body;

    (void)encode_body(&body, json, calls);
}

int main(void)
{
    static const struct subject subjects[] = {
        {"json", encode_all},
        {"json_copy", copy_all},
        {"otlp", encode_otlp},
        {"otlp_json", encode_json},
    };
    const struct batches batches = {
        .turns = 10, .group = 20, .calls = SPANS, .clock = CLOCK_MONOTONIC};
    struct body body = {0};

    for (unsigned i = 0; i < SPANS; i++)
        sample_span(&spans[i], i);
    json = zipkin_protocol.encoder_new();
    otlp = otlp_protocol.encoder_new();
    if (!json || !otlp)
        return 1;
    encode_all(SPANS);
    span_bytes = text.length / SPANS;
    if (!buffer_reserve(&copy, text.length))
        return 1;
    memset(copy.data, 0, copy.capacity);
    printf("json_bytes %zu\notlp_bytes %zu\n", span_bytes, encode_body(&body, otlp, SPANS) / SPANS);
    measure(&batches, subjects, sizeof(subjects) / sizeof(subjects[0]));
    return 0;
}
