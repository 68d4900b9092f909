/*
 * The exporter puts encoder, outbox, sender and transport together.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exporter.h"

#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "kafka_url.h"
#include "sender.h"
#include "spool_threads.h"
#include "tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#define INTERRUPT_POLL_MS 50

struct exporter {
    struct exporter_options options;
    struct exporter_callbacks callbacks;
    const struct protocol *protocol;
    struct encoder *encoder;
    struct outbox *outbox;
    struct transport *transport;
    struct reply *replies; /* see delivery.h */
    struct tap *tap;       /* NULL: none */
    struct sender sender;
    struct spool *spool; /* NULL: none; then these two as well */
    struct spool_threads *spool_threads;
    struct encoder *spool_encoder;
    struct encoder *tap_encoder[2]; /* the sender's and the spooler's; NULL: none is needed */
    struct reporter reporter;
    int64_t stop_ms; /* CLOCK_NEVER before it is known that the end is near */
    bool is_running; /* there are a thread and a transport */
};

/* ---- waiting --------------------------------------------------------------------------------- */

static void stop(struct exporter *exporter, int64_t timeout_ms)
{
    if (exporter->stop_ms != CLOCK_NEVER)
        return;
    exporter->stop_ms = clock_ms() + timeout_ms;
    outbox_stop(exporter->outbox, exporter->stop_ms);
}

/* Returns whether the end is near. */
static bool stop_if_interrupted(struct exporter *exporter)
{
    if (exporter->callbacks.interrupted(exporter->callbacks.context))
        stop(exporter, exporter->options.flush_timeout_ms);
    return exporter->stop_ms != CLOCK_NEVER;
}

/* All is delivered, but what reads a pipe may take its time for the end of the text. */
static void wait_for_reader(struct exporter *exporter)
{
    while (exporter->stop_ms == CLOCK_NEVER && outbox_wait(exporter->outbox, OUTBOX_IS_EMPTY, 0) &&
           !outbox_wait(exporter->outbox, OUTBOX_HAS_ENDED, clock_ms() + INTERRUPT_POLL_MS))
        (void)stop_if_interrupted(exporter);
}

/* The thread ends within timeout_ms, delivering until then what it can. */
static void end_thread(struct exporter *exporter, int64_t timeout_ms)
{
    outbox_close(exporter->outbox);
    if (exporter->spool)
        spool_stop(exporter->spool);
    if (timeout_ms)
        wait_for_reader(exporter);
    stop(exporter, timeout_ms);
    if (!outbox_wait(exporter->outbox, OUTBOX_HAS_ENDED, exporter->stop_ms)) {
        sender_cancel(&exporter->sender);
        if (exporter->spool)
            spool_threads_cancel(exporter->spool_threads);
    }
    sender_join(&exporter->sender);
    if (exporter->spool)
        spool_threads_join(exporter->spool_threads);
}

static bool has_scheme(const char *endpoint, const char *scheme)
{
    return strncasecmp(endpoint, scheme, strlen(scheme)) == 0;
}

static bool is_http(const char *endpoint)
{
    return has_scheme(endpoint, "http://") || has_scheme(endpoint, "https://");
}

static struct transport *open_transport(const struct transport_options *options,
                                        struct error *error)
{
    static const char file_scheme[] = "file:";
    const char *endpoint = options->endpoint;

    if (is_http(endpoint))
        return http_transport_open(options, error);
    if (is_kafka_url(endpoint))
        return kafka_transport_open(options, error);
    if (has_scheme(endpoint, file_scheme))
        return file_transport_open(options->protocol, endpoint + strlen(file_scheme), error);
    error_set(
        error,
        "endpoint \"%s\": expected http://HOST[:PORT]%s, https://..., kafka://BROKER/TOPIC or "
        "file:PATH",
        endpoint_unparsed(endpoint), options->protocol->path);
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

const struct protocol *exporter_protocol(const struct exporter_options *options)
{
    return protocol_of(options->format, options->transport.endpoint);
}

const char *exporter_endpoint(const struct exporter_options *options)
{
    return options->transport.endpoint ? options->transport.endpoint
                                       : exporter_protocol(options)->endpoint;
}

/* Besides the one that there always is; a file has one end only. */
static unsigned helpers(const struct exporter_options *options)
{
    return is_http(options->transport.endpoint) && options->requests > 1
               ? (unsigned)options->requests - 1
               : 0;
}

/* Besides these: they send what is in the spool, too. */
static unsigned spool_senders(const struct exporter_options *options)
{
    const unsigned wanted = (unsigned)options->spool.senders - 1;

    if (!options->spool.folder || !is_http(options->transport.endpoint))
        return 0;
    return wanted > helpers(options) ? wanted - helpers(options) : 0;
}

/* Of what the tap shows where that is not what is sent. */
static bool make_tap_encoders(struct exporter *exporter)
{
    if (!exporter->tap || exporter->protocol->format == FORMAT_ZIPKIN)
        return true;
    for (int i = 0; i < 2; i++) {
        exporter->tap_encoder[i] = zipkin_protocol.encoder_new();
        if (!exporter->tap_encoder[i])
            return false;
    }
    return true;
}

static bool set_up(struct exporter *exporter, struct error *error)
{
    struct exporter_options *options = &exporter->options;

    exporter->protocol = options->transport.protocol = exporter_protocol(options);
    options->transport.endpoint = exporter_endpoint(options);
    options->spool.format = exporter->protocol->format;
    /* a checkpoint is told of each batch, and must not say more than is on disk */
    if (exporter->callbacks.settled && options->spool.fsync == SPOOL_FSYNC_SECOND) {
        options->spool.fsync = SPOOL_FSYNC_BATCH;
        if (options->spool.folder && options->spool.is_fsync_given)
            exporter->callbacks.report(exporter->callbacks.context,
                                       "spool-fsync=\"second\" is \"batch\" here: a checkpoint "
                                       "must not say more than is on disk");
    }
    exporter->encoder = exporter->protocol->encoder_new();
    if (exporter->encoder) {
        exporter->outbox = outbox_new(&(struct outbox_options){
            .batch_spans = (uint32_t)options->batch_spans,
            .batch_bytes = (size_t)options->batch_bytes,
            .batch_timeout_ms = options->batch_timeout_ms,
            .queue_bytes = (size_t)options->queue_bytes,
            .is_blocking = options->on_full != ON_FULL_DROP_OLDEST,
            .has_spool = options->spool.folder != NULL,
            .is_arranged = exporter->encoder->frame || is_kafka_url(options->transport.endpoint),
            .threads =
                1 + helpers(options) + (options->spool.folder ? 1 + spool_senders(options) : 0),
        });
    }
    if (!exporter->outbox) {
        error_set(error, "out of memory");
        return false;
    }
    if (options->tap && !(exporter->tap = tap_open(options->tap, error)))
        return false;
    if (!make_tap_encoders(exporter)) {
        error_set(error, "out of memory");
        return false;
    }
    if (options->spool.folder) {
        exporter->spool = spool_open(&options->spool, exporter->outbox, error);
        if (!exporter->spool)
            return false;
    }
    exporter->transport = open_transport(&options->transport, error);
    if (exporter->transport && exporter->transport->post &&
        !(exporter->replies = calloc(POSTED_MAX, sizeof(*exporter->replies)))) {
        exporter->transport->free(exporter->transport);
        error_set(error, "out of memory");
        return false;
    }
    return exporter->transport != NULL;
}

static void say_found(struct exporter *exporter)
{
    const uint64_t found = spool_counts(exporter->spool).spool.found;
    struct error message;

    error_set(&message, "the spool \"%s\" holds %" PRIu64 " spans of before: they are sent first",
              spool_folder(exporter->spool), found);
    if (found)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

/* All that the spool's threads need. */
static bool prepare_spool(struct exporter *exporter, struct error *error)
{
    const unsigned senders = spool_senders(&exporter->options);
    struct transport *transport;

    exporter->spool_encoder = exporter->protocol->encoder_new();
    exporter->spool_threads = spool_threads_new(&exporter->sender.courier, senders);
    if (!exporter->spool_encoder || !exporter->spool_threads) {
        error_set(error, "out of memory");
        return false;
    }
    for (unsigned i = 0; i < senders; i++) {
        transport = open_transport(&exporter->options.transport, error);
        if (!transport)
            return false;
        spool_threads_give(exporter->spool_threads, transport);
    }
    say_found(exporter);
    return true;
}

/* Each has a transport and encoders of its own. */
static bool prepare_helpers(struct exporter *exporter, struct error *error)
{
    struct sender *sender = &exporter->sender;

    error_set(error, "out of memory");
    if (!sender_make_helpers(sender, helpers(&exporter->options)))
        return false;
    for (unsigned i = 0; i < sender->helper_count; i++) {
        struct courier *courier = &sender->helpers[i].courier;

        courier->encoder = exporter->protocol->encoder_new();
        if (exporter->tap_encoder[0])
            courier->tap_encoder = zipkin_protocol.encoder_new();
        if (!courier->encoder || (exporter->tap_encoder[0] && !courier->tap_encoder))
            return false;
        courier->transport = open_transport(&exporter->options.transport, error);
        if (!courier->transport)
            return false;
    }
    return true;
}

/* If there are not all of them, those that there are end again. */
static bool start_threads(struct exporter *exporter)
{
    if (!sender_start(&exporter->sender))
        return false;
    if (!exporter->spool || spool_threads_start(exporter->spool_threads, exporter->spool_encoder,
                                                exporter->tap_encoder[1])) {
        exporter->is_running = true;
        return true;
    }
    end_thread(exporter, 0);
    return false;
}

static bool start(struct exporter *exporter, struct error *error)
{
    exporter->reporter.report = exporter->callbacks.report;
    exporter->reporter.context = exporter->callbacks.context;
    exporter->sender.courier = (struct courier){
        .protocol = exporter->protocol,
        .outbox = exporter->outbox,
        .spool = exporter->spool,
        .transport = exporter->transport,
        .tap = exporter->tap,
        .encoder = exporter->encoder,
        .replies = exporter->replies,
        .tap_encoder = exporter->tap_encoder[0],
        .body_bytes = (size_t)exporter->options.batch_bytes,
        .retry_timeout_ms = exporter->options.retry_timeout_ms,
        .reporter = &exporter->reporter,
        .settled = exporter->callbacks.settled,
        .context = exporter->callbacks.context,
    };
    if (!prepare_helpers(exporter, error) || (exporter->spool && !prepare_spool(exporter, error))) {
        exporter->transport->free(exporter->transport);
        return false;
    }
    if (exporter->transport->warning)
        exporter->callbacks.report(exporter->callbacks.context, exporter->transport->warning);
    if (start_threads(exporter))
        return true;
    exporter->transport->free(exporter->transport);
    error_set(error, "cannot start a thread");
    return false;
}

/* Asks the collector, and tells whether its answer will do. */
static bool is_welcome(struct exporter *exporter, struct error *error)
{
    const struct reply *probe = &exporter->sender.probe;

    while (!sender_wait_for_probe(&exporter->sender, clock_ms() + INTERRUPT_POLL_MS)) {
        if (exporter->callbacks.interrupted(exporter->callbacks.context)) {
            error_set(error, "interrupted before there was a collector, or a reader of the file");
            return false;
        }
    }
    if (probe->delivery == DELIVERY_ACCEPTED)
        return true;
    if (probe->delivery == DELIVERY_RETRY && !exporter->options.require_collector) {
        exporter->callbacks.report(exporter->callbacks.context, probe->error.text);
        return true;
    }
    *error = probe->error;
    return false;
}

static void end(struct exporter *exporter, int64_t timeout_ms)
{
    exporter->is_running = false;
    end_thread(exporter, timeout_ms);
    if (exporter->tap)
        tap_end(exporter->tap);
    exporter->transport->free(exporter->transport);
    sender_free_helpers(&exporter->sender);
}

struct exporter *exporter_new(const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks, struct error *error)
{
    struct exporter *exporter = calloc(1, sizeof(*exporter));

    if (!exporter) {
        error_set(error, "out of memory");
        return NULL;
    }
    exporter->options = *options;
    exporter->callbacks = *callbacks;
    exporter->stop_ms = CLOCK_NEVER;
    if (!set_up(exporter, error) || !start(exporter, error) || !is_welcome(exporter, error)) {
        exporter_free(exporter);
        return NULL;
    }
    /* these texts are the caller's, and need not live longer */
    exporter->options.transport = (struct transport_options){0};
    exporter->options.tap = NULL;
    exporter->options.spool.folder = NULL;
    return exporter;
}

static void say_dropped(struct exporter *exporter)
{
    const uint64_t dropped = outbox_counts(exporter->outbox).outcome[OUTCOME_DROPPED];
    struct error message;

    error_set(&message, "%" PRIu64 " spans were dropped as the queue was full", dropped);
    if (dropped)
        exporter->callbacks.report(exporter->callbacks.context, message.text);
}

static void say_kept(struct exporter *exporter)
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
    end(exporter, exporter->options.flush_timeout_ms);
    say_dropped(exporter);
    if (exporter->spool)
        say_kept(exporter);
    if (!exporter->sender.is_kept)
        *error = exporter->sender.error;
    return exporter->sender.is_kept;
}

static void free_encoder(struct encoder *encoder)
{
    if (encoder)
        encoder->free(encoder);
}

void exporter_free(struct exporter *exporter)
{
    if (!exporter)
        return;
    if (exporter->is_running)
        end(exporter, 0);
    tap_free(exporter->tap);
    spool_threads_free(exporter->spool_threads);
    spool_free(exporter->spool);
    outbox_free(exporter->outbox);
    parts_free(&exporter->sender.courier.parts);
    free(exporter->replies);
    body_destroy(&exporter->sender.courier.body);
    body_destroy(&exporter->sender.courier.shown);
    sender_free_helpers(&exporter->sender);
    free_encoder(exporter->encoder);
    free_encoder(exporter->spool_encoder);
    free_encoder(exporter->tap_encoder[0]);
    free_encoder(exporter->tap_encoder[1]);
    free(exporter);
}

/* ---- in between ------------------------------------------------------------------------------ */

/* Here, as the sender may be busy for long with what it has. */
static void say_dropping(struct exporter *exporter)
{
    uint64_t dropped;

    if (clock_ms() < exporter->reporter.next_ms[REPORT_DROPPING])
        return; /* thousands of spans may be dropped until then */
    dropped = outbox_counts(exporter->outbox).outcome[OUTCOME_DROPPED];
    reporter_say(&exporter->reporter, REPORT_DROPPING,
                 "the queue is full: the oldest spans are dropped, %" PRIu64 " so far", dropped);
}

void exporter_add(struct exporter *exporter, const struct span *span)
{
    enum outbox_added added;

    while ((added = outbox_add(exporter->outbox, span)) == OUTBOX_FULL) {
        (void)stop_if_interrupted(exporter);
        (void)outbox_wait(exporter->outbox, OUTBOX_HAS_ROOM, clock_ms() + INTERRUPT_POLL_MS);
    }
    if (added == OUTBOX_DROPPING)
        say_dropping(exporter);
}

void exporter_heed_interruption(struct exporter *exporter)
{
    (void)stop_if_interrupted(exporter);
}

void exporter_set_live(struct exporter *exporter)
{
    if (exporter->options.on_full != ON_FULL_AUTO)
        return;
    exporter->options.on_full = ON_FULL_DROP_OLDEST;
    outbox_set_blocking(exporter->outbox, false);
}

bool exporter_is_stored(struct exporter *exporter, struct error *error)
{
    return !exporter->spool || spool_is_stored(exporter->spool, error);
}

bool exporter_has_failed(struct exporter *exporter, struct error *error)
{
    return outbox_has_failed(exporter->outbox, error);
}

void exporter_flush(struct exporter *exporter)
{
    outbox_set_draining(exporter->outbox, true);
    while (!outbox_wait(exporter->outbox, OUTBOX_IS_EMPTY, clock_ms() + INTERRUPT_POLL_MS)) {
        if (stop_if_interrupted(exporter))
            break; /* exporter_close() waits for the rest */
    }
    while (exporter->spool && !spool_wait(exporter->spool, clock_ms() + INTERRUPT_POLL_MS)) {
        if (stop_if_interrupted(exporter))
            break;
    }
    outbox_set_draining(exporter->outbox, false);
}

struct exporter_counts exporter_counts(struct exporter *exporter)
{
    struct exporter_counts counts =
        exporter->spool ? spool_counts(exporter->spool) : outbox_counts(exporter->outbox);

    if (exporter->tap)
        counts.tap_dropped = tap_dropped(exporter->tap);
    return counts;
}
