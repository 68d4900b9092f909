/*
 * Sending to a peer with partitions, while another sender spools a batch, or while memory is short.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/send.h"
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

#define BATCH_UNITS 3

static struct sender sender, spooler;
static struct transport_reply *waiting[BATCH_UNITS];
static uint32_t sent, shortages; /* shortages: how many more calls of arrange() fail */

/* ---- a peer that has a partition for each span ---- */

static bool arrange(struct transport *transport, const struct encoder *encoder, struct body_run run,
                    size_t bytes, struct arranged *arranged)
{
    (void)transport;
    (void)bytes;
    if (shortages && shortages--)
        return false;
    for (uint32_t i = run.first; i < run.end; i++) {
        CHECK(ARRAY_FITS(arranged->runs, arranged->runs_room, arranged->count));
        arranged->runs[arranged->count++] = (struct body_run){
            .body = &arranged->body, .first = i, .end = i + 1, .is_arranged = true};
        CHECK(body_append(&arranged->body, encoder, (struct text){NULL, 0},
                          body_unit(run.body, encoder, i)));
    }
    return true;
}

static void send_one(struct transport *transport, const struct payload *payload,
                     struct transport_reply *reply)
{
    (void)transport;
    (void)payload;
    waiting[sent++] = reply;
}

/* Before the answers arrive, the second sender puts its batch into the spool. */
static void await(struct transport *transport)
{
    struct error error;

    (void)transport;
    CHECK(spooler.batch->count == 0 ||
          send_put(&spooler, (struct body_run){.body = &spooler.body, .end = spooler.body.count},
                   &error));
    while (sent)
        *waiting[--sent] = (struct transport_reply){.outcome = OUTCOME_ACCEPTED};
}

static void report(void *context, const char *message)
{
    (void)context;
    (void)message;
}

static void prepare(struct sender *one, const struct senders_options *options)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};
    const struct span span = {.trace_id = 1, .id = 2, .endpoint = &endpoint};
    bool cut;

    one->options = *options;
    one->encoder = zipkin_protocol.encoder_new();
    one->replies = calloc(SENT_TOGETHER, sizeof(*one->replies));
    for (int i = 0; i < BATCH_UNITS; i++) {
        CHECK(queue_add(options->queue, &span) == QUEUE_ADDED);
        CHECK(body_add(&one->body, one->encoder, &span, &cut));
    }
    one->batch = queue_take(options->queue);
}

static void end(struct sender *one)
{
    queue_finish(one->options.queue, one->batch);
    one->encoder->free(one->encoder);
    body_destroy(&one->body);
    arranged_free(&one->spare);
    free(one->replies);
}

/* The spool does not get spans that the peer has accepted. */
int main(void)
{
    static struct reporter reporter = {.report = report};
    struct transport transport = {.send = send_one, .arrange = arrange, .await = await};
    struct span_queue *queue = queue_new(&(struct queue_options){.batch_spans = BATCH_UNITS,
                                                                 .batch_bytes = 4096,
                                                                 .queue_bytes = 1 << 20,
                                                                 .has_spool = true,
                                                                 .threads = 2});
    struct error error;
    char folder[200], text[220];
    struct exporter_counts counts;
    struct spool_record record;
    struct spool *spool;

    (void)snprintf(folder, sizeof(folder), "%s/spool", getenv("TMPDIR"));
    (void)snprintf(text, sizeof(text), "%s/lock", folder);
    spool = spool_open(
        &(struct spool_options){
            .format = FORMAT_ZIPKIN, .folder = folder, .bytes = 1 << 20, .age_ms = 60000},
        queue, &error);
    CHECK(spool != NULL);
    for (int i = 0; i < 2; i++)
        prepare(i ? &spooler : &sender, &(struct senders_options){.protocol = &zipkin_protocol,
                                                                  .queue = queue,
                                                                  .spool = spool,
                                                                  .reporter = &reporter,
                                                                  .body_bytes = 1 << 20});
    sender.transport = &transport;
    CHECK(send_body(&sender) == OUTCOME_ACCEPTED);
    counts = spool_counts(spool);
    CHECK(counts.outcome[OUTCOME_ACCEPTED] == BATCH_UNITS &&
          counts.outcome[OUTCOME_SPOOLED] == BATCH_UNITS);
    CHECK(counts.spool.waiting == BATCH_UNITS && counts.waiting == 0);
    /* the spooler does not wait without an end: there are spans to store on disk */
    CHECK(!queue_take_for_spool(queue, spool_sync_due_ms(spool) + 30000));
    CHECK(clock_ms() < spool_sync_due_ms(spool) + 30000);
    /* a lack of memory passes */
    CHECK(spool_take(spool, &record, sender.encoder, &sender.body, true));
    sender.record = &record;
    shortages = 1;
    CHECK(send_body(&sender) == OUTCOME_ACCEPTED && shortages == 0 && record.left == 0);
    spool_finish(spool, &record);
    end(&sender);
    end(&spooler);
    spool_free(spool);
    queue_free(queue);
    CHECK(unlink(text) == 0);
    (void)snprintf(text, sizeof(text), "rm -r '%s'", folder);
    return system(text) == 0 ? check_status() : 1;
}
