/* SPDX-License-Identifier: BSD-2-Clause */
#include "feed.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/loop.h"
#include "tools/base/say.h"
#include "tools/otlp/otlp_decode.h"
#include "tools/rings/ring_event.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FEED_STEP     1024  /* records or spans of one step, which takes about a millisecond */
#define FEED_AHEAD    50000 /* the most unsettled spans before the feed waits */
#define FEED_PAUSE_MS 5
/* After this time without a settled span, the feed continues, and the queue may drop spans. */
#define FEED_WAIT_MS 5000

enum feed_part { FEED_NOTHING, FEED_RECORDS, FEED_SDK_SPANS, FEED_FLUSH };

struct feed {
    struct loop *loop;
    struct export *export;
    const char *host;
    feed_done_fn *done;
    const struct joins *joins;
    void *context;
    struct timer step;
    enum feed_part part; /* the current part */
    struct selection *selection;
    struct pipeline pipeline;
    struct feed_input input;
    size_t next; /* offset of the next record */
    struct ring_clock clock;
    struct otlp_decoding decoding;
    struct span whole;        /* reused for each span of an SDK */
    struct selection *listed; /* the spans of the service; NULL: the input has no service */
    bool is_starved;          /* out of memory: halves are missing */
    uint64_t settled;         /* export_settled() when the feed last waited */
    int64_t wait_ms;          /* the end of that wait; 0: none yet */
};

/* ---- records --------------------------------------------------------------------------------- */

static void feed_give(struct feed *feed, const struct ring_entry *entry)
{
    struct input_counts *counts = &feed->pipeline.intake.counts;
    struct event event = {.time_ns = 0};
    enum decoded decoded = ring_event(entry, &feed->clock, &event);

    counts->events++;
    if (decoded == DECODED && event.kind != EVENT_PROCESS && event.kind != EVENT_METRIC &&
        !selection_wants(feed->selection, event.trace_id_high, event.trace_id, event.time_ns))
        decoded = DECODED_UNWANTED;
    if (decoded == DECODED_NEWER) {
        counts->newer++;
    } else if (decoded == DECODED_UNREADABLE) {
        counts->unreadable++;
    } else if (decoded == DECODED_UNWANTED) {
        counts->unwanted++;
    } else if (decoded != DECODED) {
        counts->foreign++;
    } else {
        event.origin.host = text_of(feed->host);
        event.origin.clock = feed->clock.offset_ns;
        event.origin.process = (struct text){"", 0};
        event.origin.tid = 0;
        counts->trace_time_ns = event.time_ns;
        assembler_add(feed->pipeline.assembler, &event);
    }
}

/* Feeds some records. Returns true if there are more. */
static bool feed_some_records(struct feed *feed)
{
    struct pipeline *pipeline = &feed->pipeline;
    struct error ignored; /* the export checks the exporter itself */

    for (unsigned i = 0; i < FEED_STEP && feed->next < feed->input.records.count; i++) {
        const struct ring_entry entry = scan_entry(&feed->input.records, feed->next++);

        feed_give(feed, &entry);
    }
    assembler_advance(pipeline->assembler, pipeline->intake.counts.trace_time_ns);
    (void)pipeline_advance(pipeline, &ignored);
    return feed->next < feed->input.records.count;
}

/* ---- spans of SDKs --------------------------------------------------------------------------- */

static void feed_give_sdk_span(void *context, const struct otlp_origin *origin,
                               const struct otlp_span *span)
{
    struct feed *feed = context;

    export_take_sdk_span(&feed->pipeline, &feed->whole, origin, span);
}

/* ---- the traces of a service ----------------------------------------------------------------- */

/* The last stage: notes the spans of the service, and skips all spans. */
static bool feed_skip_listed(void *context, struct span *span)
{
    struct feed *feed = context;
    const struct text name = span->endpoint ? span->endpoint->service : (struct text){"", 0};

    if (name.length == strlen(feed->input.service) &&
        strncasecmp(name.data, feed->input.service, name.length) == 0)
        selection_note(feed->listed, span);
    return true;
}

/* Returns the traces of the service without the ids of their spans; NULL: out of memory. */
static json_t *feed_listed(const struct feed *feed)
{
    json_t *found = selection_found(feed->listed), *trace;
    size_t i;

    json_array_foreach(json_object_get(found, "traces"), i, trace)
    {
        (void)json_array_clear(json_object_get(trace, "have"));
        (void)json_array_clear(json_object_get(trace, "want"));
    }
    return found;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Returns NULL when out of memory. */
static json_t *feed_found(struct feed *feed)
{
    if (feed->input.halves)
        return feed->is_starved ? NULL : json_object();
    return feed->input.service[0] ? feed_listed(feed) : selection_found(feed->selection);
}

static void feed_close(struct feed *feed)
{
    export_close_pipeline(feed->export, &feed->pipeline);
    feed->pipeline = (struct pipeline){.shared = NULL};
    scan_records_free(&feed->input.records);
    buffer_free(&feed->input.sdk_spans);
    selection_free(feed->listed);
    feed->listed = NULL;
    feed->part = FEED_NOTHING;
}

static void feed_end(struct feed *feed)
{
    json_t *found = feed_found(feed);

    feed_close(feed);
    feed->done(feed->context, found);
}

/* ---- step by step ---------------------------------------------------------------------------- */

static void feed_some(struct feed *feed)
{
    switch (feed->part) {
    case FEED_RECORDS:
        if (!feed_some_records(feed))
            feed->part = FEED_SDK_SPANS;
        break;
    case FEED_SDK_SPANS:
        if (!feed->input.sdk_spans.length ||
            !otlp_decode_some(&feed->decoding, FEED_STEP, feed_give_sdk_span, feed))
            feed->part = FEED_FLUSH;
        break;
    case FEED_FLUSH:
        if (!pipeline_flush_some(&feed->pipeline, FEED_STEP))
            feed_end(feed);
        break;
    case FEED_NOTHING:
        break;
    }
}

/* Returns true if the feed has to wait until the exporter has delivered spans. */
static bool feed_must_wait(struct feed *feed)
{
    const uint64_t settled = export_settled(feed->export);

    if (export_given(feed->export) - settled <= FEED_AHEAD)
        return false;
    if (settled != feed->settled || !feed->wait_ms)
        feed->wait_ms = clock_ms() + FEED_WAIT_MS;
    feed->settled = settled;
    return clock_ms() < feed->wait_ms;
}

static void feed_step(void *context)
{
    struct feed *feed = context;

    if (feed_must_wait(feed)) {
        timer_set(feed->loop, &feed->step, FEED_PAUSE_MS);
        return;
    }
    timer_set(feed->loop, &feed->step, 0);
    feed_some(feed);
    if (feed->part == FEED_NOTHING)
        timer_clear(feed->loop, &feed->step);
}

void feed_hurry(struct feed *feed)
{
    timer_clear(feed->loop, &feed->step);
    while (feed->part != FEED_NOTHING)
        feed_some(feed);
}

/* The first stage: skips spans that were sent before, tags the others, and sets their place. With
 * `halves`, skips all spans and collects their halves. */
static bool feed_skip_or_tag(void *context, struct span *span)
{
    struct feed *feed = context;
    struct join_place place;
    struct join_half half;

    if (feed->input.halves) {
        feed->is_starved |= join_read_half(span, &half) && !halves_add(feed->input.halves, &half);
        return true;
    }
    selection_note(feed->selection, span);
    if (selection_was_sent(feed->selection, span))
        return true;
    assembler_tag(feed->pipeline.assembler, span, "blkin.kept",
                  selection_why(feed->selection, span->trace_id_high, span->trace_id));
    if (joins_find(feed->joins, (struct trace_id){span->trace_id_high, span->trace_id}, &place))
        join_put_span(span, &place);
    return false;
}

static bool feed_open(struct feed *feed, struct error *error)
{
    const struct feed_input *input = &feed->input;
    struct pipeline *pipeline = &feed->pipeline;
    struct stage *list_stage;

    feed->selection = input->order->selection;
    if (input->order->is_window && !input->halves)
        selection_limit_traces(feed->selection, FEED_NAMED_MAX);
    error_set(error, "out of memory");
    pipeline->choice = skip_stage_new("only", feed_skip_or_tag, feed);
    pipeline->wall_clock_ns = input->order->offset_ns;
    if (!pipeline->choice || !export_open_pipeline(feed->export, pipeline, error))
        return false;
    if (!feed->input.service[0])
        return true;
    error_set(error, "out of memory");
    feed->listed = selection_new();
    list_stage = feed->listed ? skip_stage_new("list", feed_skip_listed, feed) : NULL;
    if (!list_stage)
        return false;
    selection_limit_traces(feed->listed, FEED_NAMED_MAX);
    chain_append(&pipeline->chain, list_stage);
    return true;
}

void feed_start(struct feed *feed, struct feed_input *input)
{
    struct error error;

    feed->input = *input;
    input->records = (struct scan_records){.count = 0};
    input->sdk_spans = (struct buffer){.length = 0};
    feed->is_starved = false;
    feed->next = 0;
    feed->wait_ms = 0;
    feed->clock =
        (struct ring_clock){INT64_MIN / 2, input->order->until_mono_ns, input->order->offset_ns};
    if (feed->input.sdk_spans.length)
        otlp_decode_begin(&feed->decoding,
                          (struct text){feed->input.sdk_spans.data, feed->input.sdk_spans.length});
    if (feed_open(feed, &error)) {
        feed->part = FEED_RECORDS;
        timer_set(feed->loop, &feed->step, 0);
        return;
    }
    say(BK4054, "%s", error.text);
    feed_close(feed);
    feed->done(feed->context, NULL);
}

struct feed *feed_new(struct loop *loop, struct export *export, const char *host,
                      const struct joins *joins, feed_done_fn *done, void *context)
{
    struct feed *feed = calloc(1, sizeof(*feed));

    if (!feed)
        return NULL;
    *feed = (struct feed){.loop = loop,
                          .export = export,
                          .host = host,
                          .done = done,
                          .joins = joins,
                          .context = context};
    feed->step = (struct timer){.due = feed_step, .context = feed};
    return feed;
}

void feed_free(struct feed *feed)
{
    if (!feed)
        return;
    timer_clear(feed->loop, &feed->step);
    if (feed->part != FEED_NOTHING)
        feed_close(feed);
    free(feed->whole.log);
    free(feed);
}
