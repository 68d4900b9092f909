/* SPDX-License-Identifier: BSD-2-Clause */
#include "exporter.h"

#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"
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
    struct spool *spool;    /* NULL: no spool */
    struct sender *senders; /* the first one is WORK_MAIN */
    unsigned sender_count;
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

/* Lets the threads deliver, then ends them. timeout_ms limits the delivery of waiting spans. */
static void exporter_end_threads(struct exporter *exporter, int64_t timeout_ms)
{
    bool has_ended;

    exporter->is_running = false;
    queue_close(exporter->queue);
    if (exporter->spool)
        spool_stop(exporter->spool);
    /* no limit once all spans are delivered: a pipe's reader may take the last bytes late */
    while (timeout_ms && exporter->stop_ms == CLOCK_NEVER &&
           queue_wait(exporter->queue, QUEUE_IS_EMPTY, 0) &&
           !queue_wait(exporter->queue, QUEUE_HAS_ENDED, clock_ms() + INTERRUPT_POLL_MS))
        (void)exporter_heed_interruption(exporter);
    exporter_stop(exporter, timeout_ms);
    while (!(has_ended =
                 queue_wait(exporter->queue, QUEUE_HAS_ENDED,
                            clock_earlier(clock_ms() + INTERRUPT_POLL_MS, exporter->stop_ms))) &&
           clock_ms() < exporter->stop_ms)
        (void)exporter_heed_interruption(exporter); /* a service tells systemd that it runs */
    if (!has_ended) {
        for (unsigned i = 0; i < exporter->sender_count; i++) {
            struct transport *transport = exporter->senders[i].transport;

            if (transport)
                transport->cancel(transport);
        }
    }
    for (unsigned i = 0; i < exporter->sender_count; i++) {
        if (exporter->senders[i].is_running)
            (void)pthread_join(exporter->senders[i].thread, NULL);
        exporter->senders[i].is_running = false;
    }
}

static void exporter_close_senders(struct exporter *exporter)
{
    for (unsigned i = 0; exporter->senders && i < exporter->sender_count; i++) {
        struct sender *sender = &exporter->senders[i];

        if (sender->transport)
            sender->transport->free(sender->transport);
        if (sender->encoder)
            sender->encoder->free(sender->encoder);
        body_destroy(&sender->body);
        arranged_free(&sender->spare);
        free(sender->replies);
    }
    free(exporter->senders);
    exporter->senders = NULL;
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

static void exporter_say_found(struct exporter *exporter)
{
    const uint64_t found = spool_counts(exporter->spool).spool.found;
    struct error message;

    error_set(&message,
              "the spool \"%s\" has %" PRIu64 " spans of an earlier run: they are sent first",
              spool_folder(exporter->spool), found);
    if (found)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

/* Gives a sender its encoder and transport. The spooler has no transport. */
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

static bool exporter_open_senders(struct exporter *exporter, unsigned of_batches,
                                  unsigned of_records, struct error *error)
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

    exporter->senders = calloc(exporter->sender_count, sizeof(*exporter->senders));
    if (!exporter->senders)
        return error_set(error, "out of memory");
    for (unsigned i = 0; i < exporter->sender_count; i++) {
        exporter->senders[i] = (struct sender){
            .options = options,
            .work = i == 0                        ? WORK_MAIN
                    : i < of_batches              ? WORK_SEND
                    : i < of_batches + of_records ? WORK_RECORDS
                                                  : WORK_SPOOL,
            .backoff = backoff_new(RETRY_FIRST_MS, RETRY_LONGEST_MS),
        };
        if (!exporter_equip(exporter, &exporter->senders[i], error))
            return false;
    }
    return true;
}

/* Only HTTP has several senders: a file has one end, and librdkafka sends in parallel. */
static bool exporter_set_up(struct exporter *exporter, struct error *error)
{
    struct exporter_options *options = &exporter->options;
    const bool has_spool = options->spool.folder != NULL;
    unsigned of_batches = 1, of_records = 0;

    exporter->protocol = options->transport.protocol = exporter_protocol(options);
    options->transport.endpoint = exporter_endpoint(options);
    options->spool.format = exporter->protocol->format;
    exporter->reporter.report = exporter->callbacks.report;
    exporter->reporter.context = exporter->callbacks.context;
    if (exporter_is_http(options->transport.endpoint)) {
        if (options->requests > 1)
            of_batches = (unsigned)options->requests;
        if (has_spool && options->spool.senders > of_batches)
            of_records = (unsigned)options->spool.senders - of_batches;
    }
    exporter->sender_count = of_batches + of_records + has_spool;
    exporter->queue = queue_new(&(struct queue_options){
        .batch_spans = (uint32_t)options->batch_spans,
        .batch_bytes = (size_t)options->batch_bytes,
        .batch_timeout_ms = options->batch_timeout_ms,
        .queue_bytes = (size_t)options->queue_bytes,
        .is_blocking = options->on_full != ON_FULL_DROP_OLDEST,
        .has_spool = has_spool,
        /* over HTTP and in files, Zipkin's spans stay in the order of their arrival */
        .is_arranged = exporter->protocol->format != FORMAT_ZIPKIN ||
                       is_kafka_url(options->transport.endpoint),
        .threads = exporter->sender_count,
    });
    error_set(error, "out of memory");
    return exporter->queue &&
           (!has_spool ||
            (exporter->spool = spool_open(&options->spool, exporter->queue, error))) &&
           exporter_open_senders(exporter, of_batches, of_records, error);
}

/* Other senders do the work of a sender that cannot start. The main sender and the spooler must
 * start. */
static bool exporter_start(struct exporter *exporter, struct error *error)
{
    const char *warning = exporter->senders[0].transport->warning;
    bool has_worked = true;

    if (exporter->spool)
        exporter_say_found(exporter);
    if (warning)
        exporter->callbacks.report(exporter->callbacks.context, warning);
    exporter->is_running = true;
    for (unsigned i = 0; i < exporter->sender_count; i++) {
        struct sender *sender = &exporter->senders[i];
        const bool is_spooler = sender->work == WORK_SPOOL;

        sender->is_running = thread_start(&sender->thread, sender_run, sender,
                                          is_spooler ? "blkin-spooler" : "blkin-sender");
        if (sender->is_running)
            continue;
        queue_end(exporter->queue);
        has_worked &= sender->work != WORK_MAIN && !is_spooler;
    }
    return has_worked || error_set(error, "cannot start a thread");
}

/* Waits for the answer to the probe. Returns whether the exporter may send spans. */
static bool exporter_await_probe(struct exporter *exporter, struct error *error)
{
    const struct transport_reply *probe = &exporter->senders[0].probe;

    while (!queue_wait(exporter->queue, QUEUE_HAS_BEGUN, clock_ms() + INTERRUPT_POLL_MS)) {
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
        !exporter_await_probe(exporter, error)) {
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
    const uint64_t left = spool_counts(exporter->spool).spool.waiting;
    struct error message;

    if (!spool_sync(exporter->spool, &message))
        exporter->callbacks.report(exporter->callbacks.context, message.text);
    if (spool_has_lost(exporter->spool, &message))
        exporter->callbacks.report(exporter->callbacks.context, message.text);
    error_set(&message,
              "the spool \"%s\" has %" PRIu64
              " spans left: the next process that uses the spool sends them",
              spool_folder(exporter->spool), left);
    if (left)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

bool exporter_close(struct exporter *exporter, struct error *error)
{
    bool is_durable;

    exporter_end_threads(exporter, exporter->options.flush_timeout_ms);
    is_durable = exporter->senders[0].is_durable;
    if (!is_durable)
        *error = exporter->senders[0].error;
    exporter_close_senders(exporter);
    exporter_say_dropped(exporter);
    if (exporter->spool)
        exporter_say_spooled(exporter);
    return is_durable;
}

void exporter_free(struct exporter *exporter)
{
    if (!exporter)
        return;
    if (exporter->is_running)
        exporter_end_threads(exporter, 0);
    exporter_close_senders(exporter);
    spool_free(exporter->spool);
    queue_free(exporter->queue);
    free(exporter);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The thread that adds spans reports drops: a sender may be busy with one batch for minutes. */
static void exporter_say_dropping(struct exporter *exporter)
{
    uint64_t dropped;

    if (clock_ms() < exporter->reporter.next_ms[REPORT_DROPPING])
        return; /* called for each dropped span: counts only when a report is due */
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

void exporter_note_pause(struct exporter *exporter, int64_t pause_ms)
{
    queue_note_pause(exporter->queue, pause_ms);
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
    return exporter->spool ? spool_counts(exporter->spool) : queue_counts(exporter->queue);
}
