/*
 * The exporter creates queue, senders, transports and spool, and connects them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exporter.h"

#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "kafka_conf.h"
#include "send.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#define INTERRUPT_POLL_MS 50

struct exporter {
    struct exporter_options options;
    struct exporter_callbacks callbacks;
    const struct protocol *protocol;
    struct span_queue *queue;
    struct spool *spool; /* NULL: no spool */
    struct senders senders;
    struct reporter reporter;
    int64_t stop_ms; /* the end of delivery; CLOCK_NEVER: not known */
    bool is_running; /* the threads run */
};

/* ---- waiting --------------------------------------------------------------------------------- */

static void exporter_stop(struct exporter *exporter, int64_t timeout_ms)
{
    if (exporter->stop_ms != CLOCK_NEVER)
        return;
    exporter->stop_ms = clock_ms() + timeout_ms;
    queue_stop(exporter->queue, exporter->stop_ms);
}

bool exporter_heed_interruption(struct exporter *exporter)
{
    if (exporter->callbacks.interrupted(exporter->callbacks.context))
        exporter_stop(exporter, exporter->options.flush_timeout_ms);
    return exporter->stop_ms != CLOCK_NEVER;
}

/* Lets the threads deliver for timeout_ms at most, then ends them. */
static void exporter_end_threads(struct exporter *exporter, int64_t timeout_ms)
{
    queue_close(exporter->queue);
    if (exporter->spool)
        spool_stop(exporter->spool);
    /* once all spans are delivered, the reader of a pipe may take any time for the end of the text
     */
    while (timeout_ms && exporter->stop_ms == CLOCK_NEVER &&
           queue_wait(exporter->queue, QUEUE_IS_EMPTY, 0) &&
           !queue_wait(exporter->queue, QUEUE_HAS_ENDED, clock_ms() + INTERRUPT_POLL_MS))
        (void)exporter_heed_interruption(exporter);
    exporter_stop(exporter, timeout_ms);
    if (!queue_wait(exporter->queue, QUEUE_HAS_ENDED, exporter->stop_ms))
        senders_cancel(&exporter->senders);
    senders_join(&exporter->senders);
}

static bool exporter_has_scheme(const char *endpoint, const char *scheme)
{
    return strncasecmp(endpoint, scheme, strlen(scheme)) == 0;
}

static bool exporter_is_http(const char *endpoint)
{
    return exporter_has_scheme(endpoint, "http://") || exporter_has_scheme(endpoint, "https://");
}

static struct transport *exporter_open_transport(const struct transport_options *options,
                                                 struct error *error)
{
    static const char file_scheme[] = "file:";
    const char *endpoint = options->endpoint;

    if (exporter_is_http(endpoint))
        return http_transport_open(options, error);
    if (is_kafka_url(endpoint))
        return kafka_transport_open(options, error);
    if (exporter_has_scheme(endpoint, file_scheme))
        return file_transport_open(options, endpoint + strlen(file_scheme), error);
    return error_null(
        error,
        "endpoint \"%s\": expected http://HOST[:PORT]%s, https://..., kafka://BROKER/TOPIC or "
        "file:PATH",
        endpoint_unparsed(endpoint), options->protocol->path);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

const struct protocol *exporter_protocol(const struct exporter_options *options)
{
    return protocol_of(options->format, options->transport.endpoint);
}

const char *exporter_endpoint(const struct exporter_options *options)
{
    return options->transport.endpoint ? options->transport.endpoint
                                       : exporter_protocol(options)->endpoint;
}

/* Only HTTP has several senders: a file has one end, and librdkafka sends in parallel. */
static struct senders_threads exporter_threads(const struct exporter_options *options)
{
    const bool has_spool = options->spool.folder != NULL;
    const bool is_parallel = exporter_is_http(options->transport.endpoint);
    const int64_t senders = is_parallel && options->requests > 1 ? options->requests : 1;
    const int64_t more = is_parallel && has_spool ? options->spool.senders - senders : 0;

    return (struct senders_threads){
        .helpers = senders > 1 ? (unsigned)senders - 1 : 0,
        .has_spooler = has_spool,
        .of_records = more > 0 ? (unsigned)more : 0,
    };
}

static void exporter_say_found(struct exporter *exporter)
{
    const uint64_t found = spool_counts(exporter->spool).spool.found;
    struct error message;

    error_set(&message,
              "the spool \"%s\" holds %" PRIu64 " spans of an earlier run: they are sent first",
              spool_folder(exporter->spool), found);
    if (found)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

/* Gives a sender its transport and encoders. The spooler has neither. */
static bool exporter_equip(struct exporter *exporter, struct sender *sender, struct error *error)
{
    error_set(error, "out of memory");
    sender->encoder = exporter->protocol->encoder_new();
    if (!sender->encoder)
        return false;
    if (sender->work == WORK_SPOOL)
        return true;
    sender->transport = exporter_open_transport(&exporter->options.transport, error);
    if (!sender->transport)
        return false;
    sender->replies =
        calloc(sender->transport->await ? SENT_TOGETHER : 1, sizeof(*sender->replies));
    return sender->replies || error_set(error, "out of memory");
}

static bool exporter_open_senders(struct exporter *exporter, const struct senders_threads *threads,
                                  struct error *error)
{
    const struct senders_options options = {
        .protocol = exporter->protocol,
        .queue = exporter->queue,
        .spool = exporter->spool,
        .taken = exporter->callbacks.taken,
        .context = exporter->callbacks.context,
        .reporter = &exporter->reporter,
        .retry_timeout_ms = exporter->options.retry_timeout_ms,
        .body_bytes = (size_t)exporter->options.batch_bytes,
    };

    error_set(error, "out of memory");
    if (!senders_open(&exporter->senders, &options, threads))
        return false;
    for (unsigned i = 0; i < exporter->senders.count; i++) {
        if (!exporter_equip(exporter, &exporter->senders.list[i], error))
            return false;
    }
    return true;
}

static bool exporter_set_up(struct exporter *exporter, struct error *error)
{
    struct exporter_options *options = &exporter->options;
    struct senders_threads threads;

    exporter->protocol = options->transport.protocol = exporter_protocol(options);
    options->transport.endpoint = exporter_endpoint(options);
    options->spool.format = exporter->protocol->format;
    exporter->reporter.report = exporter->callbacks.report;
    exporter->reporter.context = exporter->callbacks.context;
    threads = exporter_threads(options);
    exporter->queue = queue_new(&(struct queue_options){
        .batch_spans = (uint32_t)options->batch_spans,
        .batch_bytes = (size_t)options->batch_bytes,
        .batch_timeout_ms = options->batch_timeout_ms,
        .queue_bytes = (size_t)options->queue_bytes,
        .is_blocking = options->on_full != ON_FULL_DROP_OLDEST,
        .has_spool = options->spool.folder != NULL,
        /* over HTTP, Zipkin's spans are sent in order of their arrival */ .is_arranged =
            exporter->protocol->format != FORMAT_ZIPKIN ||
            is_kafka_url(options->transport.endpoint),
        .threads = senders_count(&threads),
    });
    error_set(error, "out of memory");
    return exporter->queue &&
           (!options->spool.folder ||
            (exporter->spool = spool_open(&options->spool, exporter->queue, error))) &&
           exporter_open_senders(exporter, &threads, error);
}

static bool exporter_start(struct exporter *exporter, struct error *error)
{
    const char *warning = exporter->senders.list[0].transport->warning;

    if (exporter->spool)
        exporter_say_found(exporter);
    if (warning)
        exporter->callbacks.report(exporter->callbacks.context, warning);
    exporter->is_running = true;
    error_set(error, "cannot start a thread");
    return senders_start(&exporter->senders);
}

/* Waits for the answer to the probe. Returns whether the exporter can start after that answer. */
static bool exporter_is_welcome(struct exporter *exporter, struct error *error)
{
    const struct transport_reply *probe = &exporter->senders.probe;

    while (!senders_wait_for_probe(&exporter->senders, clock_ms() + INTERRUPT_POLL_MS)) {
        if (exporter->callbacks.interrupted(exporter->callbacks.context))
            return error_set(
                error, "interrupted before a collector answered, or a reader opened the file");
    }
    if (probe->outcome == OUTCOME_ACCEPTED)
        return true;
    if (probe->outcome == OUTCOME_AGAIN && !exporter->options.require_collector) {
        exporter->callbacks.report(exporter->callbacks.context, probe->error.text);
        return true;
    }
    *error = probe->error;
    return false;
}

static void exporter_end(struct exporter *exporter, int64_t timeout_ms)
{
    exporter->is_running = false;
    exporter_end_threads(exporter, timeout_ms);
    senders_close(&exporter->senders);
}

struct exporter *exporter_new(const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks, struct error *error)
{
    struct exporter *exporter = calloc(1, sizeof(*exporter));

    if (!exporter)
        return error_null(error, "out of memory");
    exporter->options = *options;
    exporter->callbacks = *callbacks;
    exporter->stop_ms = CLOCK_NEVER;
    if (!exporter_set_up(exporter, error) || !exporter_start(exporter, error) ||
        !exporter_is_welcome(exporter, error)) {
        exporter_free(exporter);
        return NULL;
    }
    /* the caller owns these texts, and may free them now */
    exporter->options.transport = (struct transport_options){0};
    exporter->options.spool.folder = NULL;
    return exporter;
}

static void exporter_say_dropped(struct exporter *exporter)
{
    const uint64_t dropped = queue_counts(exporter->queue).outcome[OUTCOME_DROPPED];
    struct error message;

    error_set(&message, "%" PRIu64 " spans were dropped as the queue was full", dropped);
    if (dropped)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

static void exporter_say_spooled(struct exporter *exporter)
{
    const uint64_t kept = spool_counts(exporter->spool).spool.waiting;
    struct error message;

    if (!spool_sync(exporter->spool, &message))
        exporter->callbacks.report(exporter->callbacks.context, message.text);
    if (spool_has_lost(exporter->spool, &message))
        exporter->callbacks.report(exporter->callbacks.context, message.text);
    error_set(&message,
              "the spool \"%s\" keeps %" PRIu64 " spans: the next sink with it sends them",
              spool_folder(exporter->spool), kept);
    if (kept)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

bool exporter_close(struct exporter *exporter, struct error *error)
{
    exporter_end(exporter, exporter->options.flush_timeout_ms);
    exporter_say_dropped(exporter);
    if (exporter->spool)
        exporter_say_spooled(exporter);
    if (!exporter->senders.is_durable)
        *error = exporter->senders.error;
    return exporter->senders.is_durable;
}

void exporter_free(struct exporter *exporter)
{
    if (!exporter)
        return;
    if (exporter->is_running)
        exporter_end(exporter, 0);
    senders_close(&exporter->senders);
    spool_free(exporter->spool);
    queue_free(exporter->queue);
    free(exporter);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The graph's thread reports drops, because a sender may be busy with one batch for long. */
static void exporter_say_dropping(struct exporter *exporter)
{
    uint64_t dropped;

    if (clock_ms() < exporter->reporter.next_ms[REPORT_DROPPING])
        return; /* thousands of spans may be dropped in that time */
    dropped = queue_counts(exporter->queue).outcome[OUTCOME_DROPPED];
    reporter_say(&exporter->reporter, REPORT_DROPPING,
                 "the queue is full: the oldest spans are dropped, %" PRIu64 " so far", dropped);
}

void exporter_add(struct exporter *exporter, const struct span *span)
{
    enum queue_added added;

    while ((added = queue_add(exporter->queue, span)) == QUEUE_FULL) {
        (void)exporter_heed_interruption(exporter);
        (void)queue_wait(exporter->queue, QUEUE_HAS_ROOM, clock_ms() + INTERRUPT_POLL_MS);
    }
    if (added == QUEUE_DROPPING)
        exporter_say_dropping(exporter);
}

void exporter_set_live(struct exporter *exporter)
{
    if (exporter->options.on_full != ON_FULL_AUTO)
        return;
    exporter->options.on_full = ON_FULL_DROP_OLDEST;
    queue_set_blocking(exporter->queue, false);
}

bool exporter_is_stored(struct exporter *exporter, struct error *error)
{
    return !exporter->spool || spool_is_stored(exporter->spool, error);
}

bool exporter_has_failed(struct exporter *exporter, struct error *error)
{
    return queue_has_failed(exporter->queue, error);
}

void exporter_flush(struct exporter *exporter)
{
    queue_set_draining(exporter->queue, true);
    while (!queue_wait(exporter->queue, QUEUE_IS_EMPTY, clock_ms() + INTERRUPT_POLL_MS)) {
        if (exporter_heed_interruption(exporter))
            break; /* exporter_close() waits for the rest */
    }
    while (exporter->spool && !spool_wait(exporter->spool, clock_ms() + INTERRUPT_POLL_MS)) {
        if (exporter_heed_interruption(exporter))
            break;
    }
    queue_set_draining(exporter->queue, false);
}

uint64_t exporter_settled(struct exporter *exporter)
{
    return queue_settled(exporter->queue);
}

struct exporter_counts exporter_counts(struct exporter *exporter)
{
    struct exporter_counts counts =
        exporter->spool ? spool_counts(exporter->spool) : queue_counts(exporter->queue);

    return counts;
}
