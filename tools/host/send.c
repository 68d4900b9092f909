/*
 * Samples of this host to others than LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "send.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/hosts/host_board.h"
#include "tools/base/metrics.h"
#include "tools/base/say.h"
#include "tools/points/points_sender.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define CLOSE_MS 800 /* its parent waits for a second */

/* Of the senders that a reload has closed: the account goes on. */
static struct points_sender_counts closed;

struct host_send {
    struct points_sender *sender; /* NULL: not to Kafka */
    struct host_board *board;     /* NULL: no page */
    struct metrics *metrics;
    char host[256];
};

static void report(void *context, const char *message)
{
    (void)context;
    say(BK5023, "host-endpoint: %s", message);
}

static bool open_sender(struct host_send *send, const struct config *config, struct error *error)
{
    const struct points_sender_options options = {
        .url = config_text(config, "host-endpoint"),
        .kafka_file = config_text(config, "kafka-file"),
        .send_ms = config_integer(config, "host-send-ms"),
        .report = report,
    };

    if (!options.url || !*options.url)
        return true;
    send->sender = points_sender_open(&options, error);
    return send->sender != NULL;
}

static bool open_page(struct host_send *send, const struct config *config, struct loop *loop,
                      struct error *error)
{
    const char *where = config_text(config, "host-listen");

    if (!where || !*where)
        return true;
    send->board = host_board_new(false, NULL, error);
    if (send->board)
        send->metrics =
            metrics_open(loop, "host-listen", where, host_board_page, send->board, error);
    return send->metrics != NULL;
}

bool host_send_open(const struct config *config, struct loop *loop, struct host_send **send,
                    struct error *error)
{
    error_set(error, "out of memory");
    *send = calloc(1, sizeof(**send));
    if (!*send)
        return false;
    (void)gethostname((*send)->host, sizeof((*send)->host) - 1);
    if (!open_sender(*send, config, error) || !open_page(*send, config, loop, error)) {
        host_send_close(*send);
        *send = NULL;
        return false;
    }
    if (!(*send)->sender && !(*send)->board) {
        free(*send);
        *send = NULL;
    }
    return true;
}

void host_send(void *context, const struct host_sample *given)
{
    const struct host_send *send = context;
    struct sample_metric metrics[HOST_METRICS_MAX];
    const struct sample sample = {
        .host = text_of(send->host),
        .group = text_of(given->group),
        .instance = text_of(given->instance),
        .time_ns = wall_clock_ns() - (clock_ns() - (int64_t)given->monotonic),
        .period_ms = given->period_ms,
        .count = given->count,
        .metrics = metrics,
        .values = given->values,
        .present = given->present,
    };

    for (size_t i = 0; i < given->count; i++)
        metrics[i] =
            (struct sample_metric){text_of(given->metrics[i].name), text_of(given->metrics[i].unit),
                                   given->metrics[i].is_counter};
    if (send->sender)
        points_sender_take(send->sender, &sample, clock_ms());
    if (send->board)
        host_board_take(send->board, &sample);
}

void host_send_poll(struct host_send *send)
{
    if (send && send->sender)
        points_sender_poll(send->sender, clock_ms());
}

json_t *host_send_json(const struct host_send *send)
{
    struct points_sender_counts counts = closed, now;

    if (!send || !send->sender)
        return NULL;
    now = points_sender_counts(send->sender);
    points_counts_add(&counts, &now);
    return json_pack("{sI, sI, sI, sI, sI, sI, sI, sI, sI, sI}", "samples",
                     (json_int_t)counts.samples, "points", (json_int_t)counts.points,
                     "acknowledged", (json_int_t)counts.acknowledged, "failed",
                     (json_int_t)counts.failed, "possibly_persisted",
                     (json_int_t)counts.possibly_persisted, "dropped", (json_int_t)counts.dropped,
                     "waiting", (json_int_t)counts.waiting, "messages", (json_int_t)counts.messages,
                     "bytes", (json_int_t)counts.bytes, "no_room", (json_int_t)counts.no_room);
}

/* What the brokers do not take by now is given up. */
static void close_sender(struct points_sender *sender)
{
    const struct points_sender_counts before = points_sender_counts(sender);
    const struct points_sender_counts counts = points_sender_close(sender, CLOSE_MS);
    const uint64_t lost = counts.failed + counts.dropped - before.failed - before.dropped;
    char text[80];

    points_counts_add(&closed, &counts);
    (void)snprintf(text, sizeof(text),
                   "%" PRIu64 " points are lost: the brokers did not take them in time", lost);
    if (lost)
        report(NULL, text);
}

void host_send_close(struct host_send *send)
{
    if (!send)
        return;
    if (send->sender)
        close_sender(send->sender);
    metrics_close(send->metrics);
    host_board_free(send->board);
    free(send);
}
