/*
 * Batching, retries and the account of spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exporter.h"

#include "encoder.h"

#include <time.h>

#define BATCH_BYTES_MAX   (4U << 20) /* Zipkin takes 10 MiB, others less */
#define FIRST_RETRY_MS    100
#define LONGEST_RETRY_MS  5000
#define INTERRUPT_POLL_MS 50

struct exporter {
    struct transport *transport;
    struct encoder *encoder;
    struct exporter_options options;
    struct exporter_callbacks callbacks;
    struct exporter_counts counts;
    struct buffer batch;
    int64_t batch_started_ms;
    bool unreachable; /* the last retries failed: no more waiting until a batch gets through */
    enum delivery reported;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct exporter *exporter_new(struct transport *transport, const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks)
{
    struct exporter *exporter = calloc(1, sizeof(*exporter));

    if (exporter)
        exporter->encoder = zipkin_json_encoder_new();
    if (!exporter || !exporter->encoder) {
        struct error error;

        free(exporter);
        (void)transport->close(transport, &error);
        return NULL;
    }
    exporter->transport = transport;
    exporter->options = *options;
    exporter->callbacks = *callbacks;
    exporter->batch.limit = 2 * BATCH_BYTES_MAX;
    return exporter;
}

bool exporter_free(struct exporter *exporter, struct error *error)
{
    const bool complete = exporter->transport->close(exporter->transport, error);

    exporter->encoder->free(exporter->encoder);
    buffer_free(&exporter->batch);
    free(exporter);
    return complete;
}

const struct exporter_counts *exporter_counts(const struct exporter *exporter)
{
    return &exporter->counts;
}

/* Returns false when interrupted. */
static bool wait_ms(struct exporter *exporter, int64_t duration_ms)
{
    const int64_t end_ms = now_ms() + duration_ms;

    while (now_ms() < end_ms) {
        const struct timespec pause = {0, INTERRUPT_POLL_MS * 1000000L};

        if (exporter->callbacks.interrupted(exporter->callbacks.context))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static enum delivery send_with_retries(struct exporter *exporter, struct error *error)
{
    const int64_t deadline_ms = now_ms() + exporter->options.retry_timeout_ms;
    const struct text batch = {exporter->batch.data, exporter->batch.length};
    int64_t pause_ms = FIRST_RETRY_MS;

    for (;;) {
        enum delivery delivery = exporter->transport->send(exporter->transport, batch, error);

        exporter->counts.batches++;
        if (delivery != DELIVERY_RETRY || exporter->unreachable)
            return delivery;
        if (now_ms() + pause_ms > deadline_ms || !wait_ms(exporter, pause_ms))
            return delivery;
        pause_ms = pause_ms * 2 < LONGEST_RETRY_MS ? pause_ms * 2 : LONGEST_RETRY_MS;
    }
}

/* The same trouble is told once, not once per batch. */
static void report(struct exporter *exporter, enum delivery delivery, const struct error *error)
{
    struct error message;

    if (delivery != DELIVERY_ACCEPTED && delivery != exporter->reported) {
        error_set(&message, "%s: %s",
                  delivery == DELIVERY_RETRY ? "spans undelivered" : "spans refused", error->text);
        exporter->callbacks.report(exporter->callbacks.context, message.text);
    }
    exporter->reported = delivery;
}

void exporter_flush(struct exporter *exporter)
{
    struct error error;
    enum delivery delivery;

    if (exporter->counts.waiting == 0)
        return;
    exporter->batch.data[exporter->batch.length - 1] = ']'; /* in place of the last comma */
    delivery = send_with_retries(exporter, &error);
    report(exporter, delivery, &error);
    switch (delivery) {
    case DELIVERY_ACCEPTED:
        exporter->counts.accepted += exporter->counts.waiting;
        break;
    case DELIVERY_REFUSED:
        exporter->counts.refused += exporter->counts.waiting;
        break;
    case DELIVERY_RETRY:
        exporter->counts.undelivered += exporter->counts.waiting;
        break;
    }
    exporter->unreachable = delivery == DELIVERY_RETRY;
    exporter->counts.waiting = 0;
    exporter->batch.length = 0;
}

static bool encode(struct exporter *exporter, const struct span *span)
{
    struct buffer *batch = &exporter->batch;
    const size_t before = batch->length;
    bool cut;

    if (!buffer_reserve(batch, 1))
        return false;
    if (before == 0) {
        batch->data[batch->length++] = '[';
        exporter->batch_started_ms = now_ms();
    }
    if (!exporter->encoder->encode(exporter->encoder, batch, span, &cut) ||
        !buffer_reserve(batch, 1)) {
        batch->length = before;
        return false;
    }
    exporter->counts.cut += cut;
    batch->data[batch->length++] = ',';
    return true;
}

void exporter_add(struct exporter *exporter, const struct span *span)
{
    exporter->counts.spans++;
    if (!encode(exporter, span)) {
        /* the room may be taken by the batch itself */
        exporter_flush(exporter);
        if (!encode(exporter, span)) {
            exporter->counts.too_large++;
            return;
        }
    }
    exporter->counts.waiting++;
    if (exporter->counts.waiting >= (uint64_t)exporter->options.batch_spans ||
        exporter->batch.length >= BATCH_BYTES_MAX)
        exporter_flush(exporter);
}

void exporter_tick(struct exporter *exporter)
{
    if (exporter->counts.waiting &&
        now_ms() - exporter->batch_started_ms >= exporter->options.batch_timeout_ms)
        exporter_flush(exporter);
}
