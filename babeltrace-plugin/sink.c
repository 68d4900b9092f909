/*
 * The component: messages in, events to the assembler, spans to the exporter, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include "account/account.h"
#include "checkpoint.h"
#include "core/assembler.h"
#include "only.h"
#include "output/exporter.h"
#include "params.h"
#include "signals.h"
#include "streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    bt_self_component_sink *self;
    bt_message_iterator *iterator;
    struct streams *streams;
    struct event event; /* the one at hand: too large to be cleared each time */
    struct assembler *assembler;
    struct checkpoint *checkpoint; /* NULL: none is asked for */
    struct hold *hold;             /* the checkpoint's, of a recorded trace; else NULL */
    struct exporter *exporter;     /* NULL: there is nothing to do */
    struct only *only;             /* NULL: all traces are wanted */
    struct account *account;
    struct input_counts input;
    int64_t end_ns;   /* the trace's, as its packets tell, */
    int64_t until_ns; /* and as we were told */
    bool is_starved;  /* an event was lost for want of memory */
    bool flushes;     /* no other trace follows: what is open at the end is given out */
    bt_logging_level log_level;
    bool has_signals;
    bool ended;
};

static bt_self_component *self_component(struct sink *sink)
{
    return bt_self_component_sink_as_self_component(sink->self);
}

#define sink_fail(self, ...)                             \
    BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT( \
        bt_self_component_sink_as_self_component(self), __VA_ARGS__)

static void say(const struct sink *sink, bt_logging_level level, const char *message)
{
    if (level >= sink->log_level)
        fprintf(stderr, "blkin: %s\n", message);
}

static void keep(struct sink *sink, struct span *span)
{
    assembler_tag(sink->assembler, span, "blkin.kept",
                  only_why(sink->only, span->trace_id_high, span->trace_id));
    only_note(sink->only, span);
}

static void export_span(void *context, struct span *span)
{
    struct sink *sink = context;

    if (sink->only)
        keep(sink, span);
    if (sink->hold && checkpoint_skips(sink->checkpoint, span))
        exporter_skip(sink->exporter);
    else
        exporter_add(sink->exporter, span);
}

/* On the sender's thread. */
static void note_settled(void *context, const struct exporter_counts *counts, uint64_t settled)
{
    struct sink *sink = context;

    checkpoint_settle(sink->checkpoint, counts, settled);
}

static bool is_interrupted(void *context)
{
    struct sink *sink = context;

    return bt_self_component_sink_is_interrupted(sink->self) || signals_ask_to_end();
}

static void inform(void *context, const char *message)
{
    say(context, BT_LOGGING_LEVEL_INFO, message);
}

static void warn(void *context, const char *message)
{
    say(context, BT_LOGGING_LEVEL_WARNING, message);
}

static struct exporter_counts delivery_counts(void *context)
{
    struct sink *sink = context;

    return sink->exporter ? exporter_counts(sink->exporter) : (struct exporter_counts){.spans = 0};
}

static void print_summary(const struct sink *sink, const struct counts *counts)
{
    char line[COUNTS_LINE_MAX];

    if (sink->log_level == BT_LOGGING_LEVEL_NONE)
        return;
    counts_line(counts, LINE_WHOLE, line);
    fprintf(stderr, "blkin: %s\n", line);
}

static void sink_free(struct sink *sink)
{
    account_free(sink->account); /* shows the exporter's counters */
    exporter_free(sink->exporter);
    checkpoint_free(sink->checkpoint);
    assembler_free(sink->assembler);
    streams_free(sink->streams);
    only_free(sink->only);
    bt_message_iterator_put_ref(sink->iterator);
    if (sink->has_signals)
        signals_close();
    free(sink);
}

static bool open_account(struct sink *sink, const struct params *params, struct error *error)
{
    sink->account = account_open(
        &(struct account_options){.endpoint = params->exporter.transport.endpoint,
                                  .stats_file = params->stats_file,
                                  .listen = params->prometheus_listen,
                                  .period_ms = params->stats_period_ms,
                                  .shows_progress = sink->log_level <= BT_LOGGING_LEVEL_INFO},
        &(struct account_callbacks){delivery_counts, inform, warn, sink}, error);
    return sink->account != NULL;
}

static bool check_checkpoint(const struct params *params, struct error *error)
{
    const bool is_part = params->checkpoint_flush || params->checkpoint_until;

    if (params->checkpoint_trace && !params->checkpoint)
        error_set(error, "checkpoint-trace is of use with checkpoint=\"FILE\" only");
    else if (is_part && !params->checkpoint_trace)
        error_set(error, "checkpoint-flush and checkpoint-until are of use with "
                         "checkpoint-trace=\"NAME\" only");
    else
        return true;
    return false;
}

static bool check_only(const struct params *params, struct error *error)
{
    if (params->only_found && !params->only_traces)
        error_set(error, "only-found is of use with only-traces=\"FILE\" only");
    else if (params->only_traces && params->checkpoint)
        error_set(error, "only-traces and checkpoint exclude each other: some traces of a "
                         "recording are no part that another run could go on from");
    else
        return true;
    return false;
}

/* Returns true also if all traces are wanted. */
static bool open_only(struct sink *sink, const struct params *params, struct error *error)
{
    if (!check_only(params, error))
        return false;
    if (!params->only_traces)
        return true;
    sink->only = only_open(params->only_traces, params->only_found, error);
    return sink->only != NULL;
}

/* Returns true also if there is none. */
static bool open_checkpoint(struct sink *sink, const struct params *params, struct error *error)
{
    if (!check_checkpoint(params, error))
        return false;
    if (!params->checkpoint)
        return true;
    sink->checkpoint =
        checkpoint_open(&(struct checkpoint_options){.path = params->checkpoint,
                                                     .trace = params->checkpoint_trace,
                                                     .flush = params->checkpoint_flush,
                                                     .period_ms = params->stats_period_ms},
                        &(struct checkpoint_callbacks){warn, sink}, sink->assembler, error);
    if (!sink->checkpoint)
        return false;
    sink->hold = checkpoint_hold(sink->checkpoint);
    sink->flushes = !sink->hold || params->checkpoint_flush;
    sink->until_ns = params->checkpoint_until * 1000000000;
    return true;
}

static bool open_exporter(struct sink *sink, const struct params *params, struct error *error)
{
    if (sink->hold && checkpoint_is_done(sink->checkpoint)) {
        inform(sink, "this trace was delivered by an earlier run: there is nothing to do");
        return true;
    }
    sink->exporter = exporter_new(
        &params->exporter,
        &(struct exporter_callbacks){is_interrupted, warn, sink, sink->hold ? note_settled : NULL},
        error);
    return sink->exporter != NULL;
}

static bool set_up(struct sink *sink, const bt_value *map, struct error *error)
{
    struct params params;

    if (!params_read(&params, map, error))
        return false;
    signals_open();
    sink->has_signals = true;
    if (signals_ignore_sigint())
        say(sink, BT_LOGGING_LEVEL_WARNING,
            "SIGINT is ignored, as in a script's background job: SIGTERM ends this one in good "
            "order");
    sink->streams = streams_new();
    sink->assembler = assembler_new(
        &(struct assembler_options){
            .idle_timeout_ns = params.idle_timeout_ms * 1000000,
            .end_timeout_ns = params.end_timeout_ms * 1000000,
            .open_timeout_ns = params.open_timeout_ms * 1000000,
            .max_open_spans = (uint64_t)params.max_open_spans,
            .max_open_bytes = (uint64_t)params.max_open_bytes,
            .correct_clocks = params.clock_correction,
            .is_choice = params.only_traces != NULL,
            .closing = params.closing,
        },
        export_span, sink);
    if (!sink->streams || !sink->assembler) {
        error_set(error, "out of memory");
        return false;
    }
    sink->flushes = true;
    return open_only(sink, &params, error) && open_checkpoint(sink, &params, error) &&
           open_exporter(sink, &params, error) && open_account(sink, &params, error);
}

bt_component_class_initialize_method_status
sink_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                const bt_value *params, void *data)
{
    struct error error;
    struct sink *sink = calloc(1, sizeof(*sink));

    (void)configuration;
    (void)data;
    if (!sink)
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    sink->self = self;
    sink->log_level =
        bt_component_get_logging_level(bt_self_component_as_component(self_component(sink)));
    if (!set_up(sink, params, &error)) {
        sink_fail(self, "%s", error.text);
        sink_free(sink);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    if (bt_self_component_sink_add_input_port(self, "in", NULL, NULL) !=
        BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
        sink_fail(self, "cannot add the input port");
        sink_free(sink);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    bt_self_component_set_data(self_component(sink), sink);
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static struct sink *sink_of(bt_self_component_sink *self)
{
    return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

/* Is there a live session at the other end, maybe beyond filters? */
static bool comes_from_live(const bt_port_input *port)
{
    const bt_connection *connection =
        bt_port_borrow_connection_const(bt_port_input_as_port_const(port));
    const bt_component *component;
    const bt_component_filter *filter;

    if (!connection)
        return false;
    component = bt_port_borrow_component_const(
        bt_port_output_as_port_const(bt_connection_borrow_upstream_port_const(connection)));
    if (!bt_component_is_filter(component))
        return strcmp(bt_component_class_get_name(bt_component_borrow_class_const(component)),
                      "lttng-live") == 0;
    filter = (const bt_component_filter *)component; /* the header has the way up only */
    for (uint64_t i = 0; i < bt_component_filter_get_input_port_count(filter); i++) {
        if (comes_from_live(bt_component_filter_borrow_input_port_by_index_const(filter, i)))
            return true;
    }
    return false;
}

bt_component_class_sink_graph_is_configured_method_status
sink_graph_is_configured(bt_self_component_sink *self)
{
    struct sink *sink = sink_of(self);
    bt_self_component_port_input *port = bt_self_component_sink_borrow_input_port_by_index(self, 0);

    if (!sink->exporter)
        return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
    if (comes_from_live(bt_self_component_port_input_as_port_input(port))) {
        exporter_set_live(sink->exporter);
        account_watch(sink->account);
    }
    return (bt_component_class_sink_graph_is_configured_method_status)
        bt_message_iterator_create_from_sink_component(self, port, &sink->iterator);
}

/* Once: a program with another provider of this name may write millions. */
static void say_unreadable(const struct sink *sink, const bt_event *bt_event)
{
    char message[512];

    if (sink->input.unreadable)
        return;
    snprintf(
        message, sizeof(message),
        "event \"%s\" is unreadable: a field is missing or not as BlkKin's provider writes it, "
        "or the trace has no clock; further such events are only counted",
        bt_event_class_get_name(bt_event_borrow_class_const(bt_event)));
    say(sink, BT_LOGGING_LEVEL_WARNING, message);
}

/* Counts an event that is not for the assembler. */
static void pass_over(struct sink *sink, const bt_event *bt_event, enum decoded why)
{
    switch (why) {
    case DECODED_FOREIGN:
        sink->input.foreign++;
        break;
    case DECODED_ALARM:
        sink->input.alarms++;
        break;
    case DECODED_UNWANTED:
        sink->input.unwanted++;
        break;
    case DECODED_UNREADABLE:
        say_unreadable(sink, bt_event);
        sink->input.unreadable++;
        break;
    default:
        sink->is_starved = true;
        sink->input.unreadable++;
        break;
    }
}

static void use_event(struct sink *sink, const bt_message *message)
{
    const bt_event *bt_event = bt_message_event_borrow_event_const(message);
    struct stream_decoder *decoder =
        streams_decoder(sink->streams, bt_event_borrow_stream_const(bt_event));
    struct event *event = &sink->event;
    enum decoded decoded = DECODED_NO_MEMORY;

    sink->input.events++;
    if (decoder)
        decoded = stream_decoder_decode(decoder, message, sink->only, event);
    if (sink->only && (decoded == DECODED || decoded == DECODED_UNWANTED))
        only_note_time(sink->only, event->time_ns);
    if (decoded != DECODED)
        pass_over(sink, bt_event, decoded);
    else if (sink->hold)
        hold_add(sink->hold, event);
    else
        assembler_add(sink->assembler, event);
}

/* How far the trace goes, also where nothing has happened. */
static void use_packet_end(struct sink *sink, const bt_message *message)
{
    const bt_stream_class *class = bt_stream_borrow_class_const(
        bt_packet_borrow_stream_const(bt_message_packet_end_borrow_packet_const(message)));
    int64_t time_ns;

    if (bt_stream_class_packets_have_end_default_clock_snapshot(class) &&
        time_of_snapshot(bt_message_packet_end_borrow_default_clock_snapshot_const(message),
                         &time_ns) &&
        time_ns > sink->end_ns)
        sink->end_ns = time_ns;
}

static void use_beacon(struct sink *sink, const bt_message *message)
{
    int64_t now_ns;

    if (time_of_snapshot(
            bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(message), &now_ns))
        assembler_advance(sink->assembler, now_ns);
}

/* Returns false if the message has no times: they depend on the stream class. */
static bool times_of_discarded_events(const bt_message *message, const bt_stream_class *class,
                                      struct loss *loss)
{
    return bt_stream_class_discarded_events_have_default_clock_snapshots(class) &&
           time_of_snapshot(
               bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(message),
               &loss->begin_ns) &&
           time_of_snapshot(
               bt_message_discarded_events_borrow_end_default_clock_snapshot_const(message),
               &loss->end_ns);
}

static bool times_of_discarded_packets(const bt_message *message, const bt_stream_class *class,
                                       struct loss *loss)
{
    return bt_stream_class_discarded_packets_have_default_clock_snapshots(class) &&
           time_of_snapshot(
               bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(message),
               &loss->begin_ns) &&
           time_of_snapshot(
               bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(message),
               &loss->end_ns);
}

static void note_loss(struct sink *sink, const bt_stream *stream, struct loss *loss)
{
    struct stream_decoder *decoder = streams_decoder(sink->streams, stream);

    if (decoder && !stream_decoder_has_ours(decoder, stream))
        return; /* counted, but no span of ours lacks anything */
    if (decoder)
        loss->origin = stream_decoder_origin(decoder);
    if (sink->hold)
        hold_note_loss(sink->hold, loss);
    else
        assembler_note_loss(sink->assembler, loss);
}

/*
 * A loss of unknown size counts as one, never as none: babeltrace sets the count to 0 then. Of a
 * ring that was copied it is all since the session's start.
 */
static void use_discarded_events(struct sink *sink, const bt_message *message)
{
    const bt_stream *stream = bt_message_discarded_events_borrow_stream_const(message);
    struct loss loss = {.has_times = false};
    const bool is_known = bt_message_discarded_events_get_count(message, &loss.events) ==
                          BT_PROPERTY_AVAILABILITY_AVAILABLE;

    if (sink->only && !is_known)
        return;
    sink->input.discarded_events += is_known ? loss.events : 1;
    loss.has_times =
        times_of_discarded_events(message, bt_stream_borrow_class_const(stream), &loss);
    note_loss(sink, stream, &loss);
}

/* With only-traces they are left out on purpose. */
static void use_discarded_packets(struct sink *sink, const bt_message *message)
{
    const bt_stream *stream = bt_message_discarded_packets_borrow_stream_const(message);
    struct loss loss = {.has_times = false};
    const bool is_known = bt_message_discarded_packets_get_count(message, &loss.packets) ==
                          BT_PROPERTY_AVAILABILITY_AVAILABLE;

    if (sink->only)
        return;
    sink->input.discarded_packets += is_known ? loss.packets : 1;
    loss.has_times =
        times_of_discarded_packets(message, bt_stream_borrow_class_const(stream), &loss);
    note_loss(sink, stream, &loss);
}

static void use_message(struct sink *sink, const bt_message *message)
{
    switch (bt_message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        use_event(sink, message);
        break;
    case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
        use_beacon(sink, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        use_discarded_events(sink, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        use_discarded_packets(sink, message);
        break;
    case BT_MESSAGE_TYPE_PACKET_END:
        if (sink->hold)
            use_packet_end(sink, message);
        break;
    case BT_MESSAGE_TYPE_STREAM_BEGINNING:
        sink->input.streams_open++;
        break;
    case BT_MESSAGE_TYPE_STREAM_END:
        sink->input.streams_open--;
        streams_end(sink->streams, bt_message_stream_end_borrow_stream_const(message));
        break;
    default:
        break;
    }
}

/* Returns false if the message has none, or none that is of use here. */
static bool time_of_message(const bt_message *message, int64_t *time_ns)
{
    switch (bt_message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        return bt_message_event_borrow_stream_class_default_clock_class_const(message) &&
               time_of_snapshot(bt_message_event_borrow_default_clock_snapshot_const(message),
                                time_ns);
    case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
        return time_of_snapshot(
            bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(message), time_ns);
    default:
        return false;
    }
}

/* How far the trace was read: also by events of others, and when nothing happens. */
static void note_time(struct sink *sink, bt_message_array_const messages, uint64_t count)
{
    int64_t time_ns;

    while (count && !time_of_message(messages[count - 1], &time_ns))
        count--;
    if (count && time_ns > 0)
        sink->input.trace_time_ns = time_ns;
}

static void look_at_checkpoint(struct sink *sink)
{
    struct checkpoint_counts counts;

    if (!sink->checkpoint)
        return;
    counts = checkpoint_counts(sink->checkpoint);
    sink->input.events_held = counts.events_held;
    sink->input.spans_taken_over = counts.spans_taken_over;
    sink->input.checkpoint_errors = counts.errors;
    /* what is held is counted where it is used, in this run or the next */
    if (sink->hold)
        sink->input.events = sink->input.foreign + sink->input.unreadable + sink->input.alarms +
                             assembler_counts(sink->assembler)->events;
}

static void publish(struct sink *sink)
{
    look_at_checkpoint(sink);
    account_publish(sink->account, &sink->input, assembler_counts(sink->assembler));
}

static void publish_now(struct sink *sink)
{
    look_at_checkpoint(sink);
    account_publish_now(sink->account, &sink->input, assembler_counts(sink->assembler));
}

#define FLUSH_STEP 1024 /* spans: well below a millisecond */

/* There may be a million open spans: an interruption in between is heeded. */
static void flush(struct sink *sink)
{
    while (assembler_flush_some(sink->assembler, FLUSH_STEP))
        exporter_heed_interruption(sink->exporter);
}

/*
 * Also when the graph was interrupted or has failed: what was read is delivered all the same. But
 * not what is open in a trace that will be read again.
 */
static void end(struct sink *sink)
{
    struct counts counts;
    struct error error;

    if (sink->ended)
        return;
    sink->ended = true;
    if (sink->exporter) {
        if (!sink->hold)
            flush(sink);
        publish_now(sink);
        if (!exporter_close(sink->exporter, &error))
            say(sink, BT_LOGGING_LEVEL_ERROR, error.text);
    }
    if (sink->checkpoint)
        checkpoint_keep(sink->checkpoint, true);
    look_at_checkpoint(sink);
    counts = account_end(sink->account, &sink->input, assembler_counts(sink->assembler));
    print_summary(sink, &counts);
    if (!counts_add_up(&counts))
        say(sink, BT_LOGGING_LEVEL_ERROR, "the account does not add up: this is a bug of ours");
}

/* Whether all has ended as it should: an error is set if not. */
static bool has_delivered(struct sink *sink)
{
    const struct exporter_counts out = exporter_counts(sink->exporter);
    const uint64_t delivered = out.outcome[OUTCOME_ACCEPTED] + out.outcome[OUTCOME_SKIPPED] +
                               out.outcome[OUTCOME_SPOOLED] - out.spool.lost_own;

    if (out.unsure)
        sink_fail(sink->self, "%" PRIu64 " spans may not be in the file: its end failed",
                  out.unsure);
    else if (delivered != out.spans)
        sink_fail(sink->self, "%" PRIu64 " of %" PRIu64 " spans were not delivered",
                  out.spans - delivered, out.spans);
    return !out.unsure && delivered == out.spans;
}

/* Of spans that the collector does not want, no further run would make it take one. */
static bool is_settled(struct sink *sink)
{
    const struct exporter_counts out = exporter_counts(sink->exporter);

    return !out.unsure && !out.outcome[OUTCOME_UNDELIVERED] && !out.outcome[OUTCOME_DROPPED] &&
           !out.outcome[OUTCOME_NO_MEMORY];
}

static bool finish_checkpoint(struct sink *sink)
{
    struct error error;

    if (!sink->hold)
        return true;
    if (sink->is_starved || assembler_is_starved(sink->assembler)) {
        checkpoint_begin_anew(sink->checkpoint);
        sink_fail(sink->self, "there was no memory for all of the trace: run it again, and all of "
                              "it is sent");
        return false;
    }
    if (!is_settled(sink) || checkpoint_finish(sink->checkpoint, &error))
        return true;
    sink_fail(sink->self, "%s", error.text);
    return false;
}

/* Without anything in it, the trace is gone but for its name: see checkpoint_end_trace(). */
static bool is_gone(const struct sink *sink)
{
    return sink->input.events == 0 && sink->end_ns == 0;
}

/* All of the trace was read: of less it would be false. An error is set if it fails. */
static bool tell_found(struct sink *sink)
{
    struct error error;

    if (!sink->only || only_write_found(sink->only, &error))
        return true;
    sink_fail(sink->self, "%s", error.text);
    return false;
}

static bt_component_class_sink_consume_method_status end_of_trace(struct sink *sink)
{
    bool has_told;

    if (sink->hold)
        checkpoint_end_trace(sink->checkpoint,
                             sink->end_ns > sink->until_ns ? sink->end_ns : sink->until_ns,
                             is_gone(sink));
    if (sink->flushes)
        flush(sink);
    has_told = tell_found(sink);
    publish_now(sink);
    exporter_flush(sink->exporter);
    end(sink);
    return has_told && finish_checkpoint(sink) && has_delivered(sink)
               ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END
               : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
}

/* To read on would only be to lose on: the trace is still there, so it is better to stop. */
static bt_component_class_sink_consume_method_status go_on(struct sink *sink)
{
    struct error error = {""};

    if (sink->hold && checkpoint_has_failed(sink->checkpoint, &error)) {
        sink_fail(sink->self, "%s", error.text);
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
    }
    if (!exporter_has_failed(sink->exporter, &error))
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
    sink_fail(sink->self, "the trace was not read to its end: cannot deliver: %s", error.text);
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
}

/* Not only in sink_finalize(), before which babeltrace2 says goodbye to the relay daemon. */
static bt_component_class_sink_consume_method_status end_early(struct sink *sink)
{
    end(sink);
    if (bt_self_component_sink_is_interrupted(sink->self))
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN; /* then the graph ends */
    sink_fail(sink->self, "the trace was not read to its end: ended by a signal");
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
}

/*
 * A live session's. Checkpoint and statistics file are of the same moment: when we are killed, who
 * adds the account of the next run to ours has every event once, as read or as missing.
 */
static void keep_checkpoint(struct sink *sink)
{
    if (!sink->checkpoint || !checkpoint_is_due(sink->checkpoint))
        return;
    publish_now(sink);
    account_keep(sink->account);
    checkpoint_keep(sink->checkpoint, false);
}

static bt_component_class_sink_consume_method_status
use_messages(struct sink *sink, bt_message_array_const messages, uint64_t count)
{
    note_time(sink, messages, count);
    for (uint64_t i = 0; i < count; i++) {
        use_message(sink, messages[i]);
        bt_message_put_ref(messages[i]);
    }
    publish(sink);
    keep_checkpoint(sink);
    return go_on(sink);
}

bt_component_class_sink_consume_method_status sink_consume(bt_self_component_sink *self)
{
    struct sink *sink = sink_of(self);
    bt_component_class_sink_consume_method_status result;
    bt_message_array_const messages;
    uint64_t count;

    if (sink->ended || !sink->exporter)
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
    result = (bt_component_class_sink_consume_method_status)bt_message_iterator_next(
        sink->iterator, &messages, &count);
    switch (result) {
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK:
        result = use_messages(sink, messages, count);
        return result == BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK && signals_ask_to_end()
                   ? end_early(sink)
                   : result;
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN:
        exporter_set_live(sink->exporter); /* a trace on disk never says so */
        publish(sink);
        keep_checkpoint(sink);
        return is_interrupted(sink) ? end_early(sink) : result;
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END:
        return end_of_trace(sink);
    default:
        return result;
    }
}

void sink_finalize(bt_self_component_sink *self)
{
    struct sink *sink = sink_of(self);

    end(sink);
    sink_free(sink);
}

bt_component_class_get_supported_mip_versions_method_status
sink_supported_mip_versions(bt_self_component_class_sink *self, const bt_value *params, void *data,
                            bt_logging_level level, bt_integer_range_set_unsigned *versions)
{
    (void)self;
    (void)params;
    (void)data;
    (void)level;
    return (bt_component_class_get_supported_mip_versions_method_status)
        bt_integer_range_set_unsigned_add_range(versions, 0, 1);
}
