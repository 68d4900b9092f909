/*
 * The CPU time, per span, that the sink needs for finished spans whose endpoint is Kafka. It
 * includes queueing, sorting by partition, encoding, compression and sending, in all threads, until
 * the broker acknowledges. The spans are OTLP; the anchor is the same as JSON.
 *
 *     bench-kafka BROKER OTLP-TOPIC JSON-TOPIC      (existing topics with some partitions)
 *
 * Prints "run TURN PASS NAME NS", per span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "sample_span.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KAFKA_SPANS    16000 /* two of the sink's batches */
#define KAFKA_SERVICES 8
#define KAFKA_TRACE    10 /* spans */

static struct span spans[KAFKA_SPANS];
static struct endpoint endpoints[KAFKA_SERVICES];
static struct exporter *otlp, *json;
static uint64_t rounds;

static void say(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "bench-kafka: %s\n", message);
}

/* Makes spans of the services that take part in each trace. */
static void make_spans(void)
{
    static char names[KAFKA_SERVICES][8];

    for (unsigned i = 0; i < KAFKA_SERVICES; i++) {
        endpoints[i] = sample_endpoint;
        (void)snprintf(names[i], sizeof(names[i]), "osd.%u", i);
        endpoints[i].service = text_of(names[i]);
    }
    for (unsigned i = 0; i < KAFKA_SPANS; i++) {
        sample_span(&spans[i], i);
        spans[i].endpoint = &endpoints[i % KAFKA_SERVICES];
    }
}

/* Opens an exporter with the sink's defaults for kafka://. */
static struct exporter *open_exporter(const char *broker, const char *topic,
                                      enum protocol_format format)
{
    char endpoint[512];
    struct exporter *exporter;
    struct error error;

    (void)snprintf(endpoint, sizeof(endpoint), "kafka://%s/%s", broker, topic);
    exporter = exporter_new(
        &(struct exporter_options){
            .transport = {.endpoint = endpoint, .request_timeout_ms = 30000},
            .format = format,
            .require_collector = true,
            .batch_spans = 8000,
            .batch_bytes = 8 << 20,
            .batch_timeout_ms = 20,
            .queue_bytes = 64 << 20,
            .on_full = ON_FULL_BLOCK,
            .retry_timeout_ms = 60000,
            .flush_timeout_ms = 5000,
        },
        &(struct exporter_callbacks){.interrupted = never, .report = say}, &error);
    if (!exporter)
        errx(1, "%s", error.text);
    return exporter;
}

/* Sends spans with new ids each time. */
static void send_all(struct exporter *exporter, unsigned count)
{
    if (!count)
        return;
    rounds++;
    for (unsigned i = 0; i < count; i++) {
        spans[i].trace_id = hash_mix(rounds << 32 | i / KAFKA_TRACE);
        spans[i].id = hash_mix(rounds << 32 | 1U << 31 | i);
        exporter_add(exporter, &spans[i]);
    }
    exporter_flush(exporter);
}

static void send_otlp(unsigned count)
{
    send_all(otlp, count);
}

static void send_json(unsigned count)
{
    send_all(json, count);
}

static void close_exporter(struct exporter *exporter)
{
    const struct exporter_counts counts = exporter_counts(exporter);
    struct error error;

    if (counts.outcome[OUTCOME_ACCEPTED] != counts.spans)
        errx(1, "not all spans were accepted");
    if (!exporter_close(exporter, &error))
        errx(1, "%s", error.text);
    exporter_free(exporter);
}

int main(int argc, char **argv)
{
    static const struct subject subjects[] = {{"kafka", send_otlp}, {"kafka_json", send_json}};
    const struct batches batches = {
        .turns = 20, .group = 2, .calls = KAFKA_SPANS, .clock = CLOCK_PROCESS_CPUTIME_ID};

    if (argc != 4)
        errx(1, "usage: bench-kafka BROKER OTLP-TOPIC JSON-TOPIC");
    make_spans();
    otlp = open_exporter(argv[1], argv[2], FORMAT_OTLP);
    json = open_exporter(argv[1], argv[3], FORMAT_ZIPKIN);
    measure(&batches, subjects, 2);
    close_exporter(otlp);
    close_exporter(json);
    for (unsigned i = 0; i < KAFKA_SPANS; i++)
        free(spans[i].log);
    return 0;
}
