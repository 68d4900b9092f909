/*
 * The component: messages in, events to the assembler, spans to the exporter, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/checkpoint/checkpoint.h"
#include "babeltrace-plugin/decode/input.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/hosts/host_board.h"
#include "babeltrace-plugin/stages/chain.h"
#include "babeltrace-plugin/stages/hosts_stage.h"
#include "babeltrace-plugin/stages/join_stage.h"
#include "babeltrace-plugin/stages/tail_stage.h"
#include "params.h"
#include "signals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sink {
    bt_self_component_sink *self;
    bt_message_iterator *iterator;
    struct input input;
    struct assembler *assembler;
    struct checkpoint *checkpoint;     /* NULL: none is asked for */
    struct hold *hold;                 /* the checkpoint's, of a recorded trace; else NULL */
    struct exporter *exporter;         /* NULL: there is nothing to do */
    struct chain chain;                /* the stages, from the assembler to the exporter */
    struct stage *join, *hosts, *tail; /* of the chain */
    struct host_board *board;          /* for the page; NULL: there is none */
    struct account *account;
    int64_t until_ns; /* the trace's end, as we were told */
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

/* The first stage, where only some traces are wanted. */
static bool only_skips(void *context, struct span *span)
{
    struct sink *sink = context;

    only_note(sink->input.only, span);
    if (only_was_sent(sink->input.only, span))
        return true;
    assembler_tag(sink->assembler, span, "blkin.kept",
                  only_why(sink->input.only, span->trace_id_high, span->trace_id));
    return false;
}

/* The last stage, of a recorded trace with a checkpoint. */
static bool delivered_skips(void *context, struct span *span)
{
    struct sink *sink = context;

    return checkpoint_skips(sink->checkpoint, span);
}

static void take_span(void *context, struct span *span)
{
    struct sink *sink = context;

    chain_take(&sink->chain, span, assembler_now(sink->assembler));
}

static void export_span(void *context, const struct span *span)
{
    struct sink *sink = context;

    exporter_add(sink->exporter, span);
}

static void use_metric(void *context, const struct event *event, int64_t time_ns)
{
    struct sink *sink = context;

    hosts_stage_add(sink->hosts, event, time_ns, assembler_now(sink->assembler));
    if (sink->board)
        host_board_take_event(sink->board, event, time_ns);
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

static char *hosts_page(void *context)
{
    const struct sink *sink = context;

    return sink->board ? host_board_page(sink->board) : NULL;
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
    chain_free(&sink->chain);
    host_board_free(sink->board);
    exporter_free(sink->exporter);
    checkpoint_free(sink->checkpoint);
    assembler_free(sink->assembler);
    streams_free(sink->input.streams);
    only_free(sink->input.only);
    bt_message_iterator_put_ref(sink->iterator);
    if (sink->has_signals)
        signals_close();
    free(sink);
}

static bool open_account(struct sink *sink, const struct params *params, struct error *error)
{
    sink->account = account_open(
        &(struct account_options){.endpoint = exporter_endpoint(&params->exporter),
                                  .stats_file = params->stats_file,
                                  .listen = params->prometheus_listen,
                                  .period_ms = params->stats_period_ms,
                                  .shows_progress = sink->log_level <= BT_LOGGING_LEVEL_INFO},
        &(struct account_callbacks){delivery_counts, inform, warn, sink, hosts_page}, error);
    return sink->account != NULL;
}

/* Returns true also if all traces are wanted. */
static bool open_only(struct sink *sink, const struct params *params, struct error *error)
{
    if (!params->only_traces)
        return true;
    sink->input.only = only_open(params->only_traces, params->only_found, error);
    return sink->input.only != NULL;
}

static struct stage *new_join(const struct params *params)
{
    struct stage *stage =
        join_stage_new(&(struct join_options){.wait_ns = params->join_wait_ms * 1000000,
                                              .root_wait_ns = params->open_timeout_ms * 1000000,
                                              .skew_ns = params->join_skew_us * 1000,
                                              .max_bytes = (uint64_t)params->join_max_bytes});

    if (stage)
        stage->is_off = params->join_wait_ms <= 0;
    return stage;
}

/* Of traces that were chosen by a rule or by hand, every span is of interest. */
static struct stage *new_hosts(const struct params *params)
{
    const int64_t min_ms = params->only_traces ? 0 : params->host_min_ms;
    struct stage *stage =
        hosts_stage_new(&(struct hosts_options){.min_ns = min_ms * 1000000,
                                                .max_history_bytes = HOSTS_HISTORY_BYTES,
                                                .max_held_bytes = HOSTS_HELD_BYTES});

    if (stage)
        stage->is_off = params->host_min_ms < 0;
    return stage;
}

static bool append(struct sink *sink, struct stage *stage, struct error *error)
{
    if (stage)
        chain_append(&sink->chain, stage);
    else if (!error->text[0])
        error_set(error, "out of memory");
    return stage != NULL;
}

/* But for the last one, which needs the checkpoint, which needs these. */
static bool open_stages(struct sink *sink, const struct params *params, struct error *error)
{
    error->text[0] = '\0';
    if (sink->input.only && !append(sink, skip_stage_new("only", only_skips, sink), error))
        return false;
    sink->join = new_join(params);
    if (!append(sink, sink->join, error))
        return false;
    sink->hosts = new_hosts(params);
    if (!append(sink, sink->hosts, error))
        return false;
    sink->tail = tail_stage_new(
        &(struct tail_options){.rules = params->only_traces ? NULL : params->tail_sampling,
                               .wait_ms = params->tail_wait_ms,
                               .max_bytes = params->tail_max_bytes,
                               .assembler = sink->assembler,
                               .warn = warn,
                               .context = sink},
        error);
    return append(sink, sink->tail, error);
}

static bool open_board(struct sink *sink, const struct params *params, struct error *error)
{
    struct error cause = {""};

    if (!params->prometheus_listen)
        return true;
    sink->board = host_board_new(true, params->host_groups, &cause);
    if (!sink->board)
        error_set(error, "host-groups: %.900s", cause.text);
    return sink->board != NULL;
}

/* Returns true also if there is none. */
static bool open_checkpoint(struct sink *sink, const struct params *params, struct error *error)
{
    if (!params->checkpoint)
        return true;
    sink->checkpoint = checkpoint_open(
        &(struct checkpoint_options){.path = params->checkpoint,
                                     .trace = params->checkpoint_trace,
                                     .flush = params->checkpoint_flush,
                                     .is_again = params->checkpoint_again,
                                     .period_ms = params->stats_period_ms},
        &(struct checkpoint_callbacks){warn, sink}, sink->assembler, &sink->chain, error);
    if (!sink->checkpoint)
        return false;
    sink->input.is_second = params->checkpoint_again;
    sink->hold = checkpoint_hold(sink->checkpoint);
    sink->flushes = !sink->hold || params->checkpoint_flush;
    sink->until_ns = params->checkpoint_until * 1000000000;
    return !sink->hold || append(sink, skip_stage_new("skip", delivered_skips, sink), error);
}

static bool open_exporter(struct sink *sink, const struct params *params, struct error *error)
{
    if (sink->hold && checkpoint_is_done(sink->checkpoint)) {
        inform(sink, "this trace was delivered by an earlier run: there is nothing to do");
        chain_hand_over(&sink->chain);
        return true;
    }
    sink->exporter = exporter_new(
        &params->exporter,
        &(struct exporter_callbacks){is_interrupted, warn, sink, sink->hold ? note_settled : NULL},
        error);
    return sink->exporter != NULL;
}

static bool set_up(struct sink *sink, enum format format, const bt_value *map, struct error *error)
{
    struct params params;

    if (!params_read(&params, map, error) || !params_fit(&params, error))
        return false;
    if (params.exporter.format == FORMAT_AUTO)
        params.exporter.format = format;
    signals_open();
    sink->has_signals = true;
    if (signals_ignore_sigint())
        say(sink, BT_LOGGING_LEVEL_WARNING,
            "SIGINT is ignored, as in a script's background job: SIGTERM ends this one in good "
            "order");
    if (!open_only(sink, &params, error))
        return false;
    sink->input.streams = streams_new();
    sink->assembler = assembler_new(
        &(struct assembler_options){
            .idle_timeout_ns = params.idle_timeout_ms * 1000000,
            .end_timeout_ns = params.end_timeout_ms * 1000000,
            .open_timeout_ns = params.open_timeout_ms * 1000000,
            .max_open_spans = (uint64_t)params.max_open_spans,
            .max_open_bytes = (uint64_t)params.max_open_bytes,
            .correct_clocks = params.clock_correction,
            .wall_clock_ns = sink->input.only ? only_clock(sink->input.only) : 0,
            .is_choice = sink->input.only != NULL,
            .closing = params.closing,
            .metric = use_metric,
        },
        take_span, sink);
    if (!sink->input.streams || !sink->assembler) {
        error_set(error, "out of memory");
        return false;
    }
    sink->flushes = true;
    chain_init(&sink->chain, export_span, sink);
    if (!open_stages(sink, &params, error) || !open_board(sink, &params, error) ||
        !open_checkpoint(sink, &params, error))
        return false;
    sink->input.assembler = sink->assembler;
    sink->input.hold = sink->hold;
    sink->input.warn = warn;
    sink->input.context = sink;
    return open_exporter(sink, &params, error) && open_account(sink, &params, error);
}

static bt_component_class_initialize_method_status
initialize(bt_self_component_sink *self, enum format format, const bt_value *params)
{
    struct error error;
    struct sink *sink = calloc(1, sizeof(*sink));

    if (!sink)
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    sink->self = self;
    sink->log_level =
        bt_component_get_logging_level(bt_self_component_as_component(self_component(sink)));
    if (!set_up(sink, format, params, &error)) {
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

bt_component_class_initialize_method_status
sink_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                const bt_value *params, void *data)
{
    (void)configuration;
    (void)data;
    return initialize(self, FORMAT_AUTO, params);
}

bt_component_class_initialize_method_status
sink_initialize_otlp(bt_self_component_sink *self,
                     bt_self_component_sink_configuration *configuration, const bt_value *params,
                     void *data)
{
    (void)configuration;
    (void)data;
    return initialize(self, FORMAT_OTLP, params);
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

static void look_at_stages(struct sink *sink)
{
    struct input_counts *counts = &sink->input.counts;
    const struct stage_counts *chain = &sink->chain.counts;

    counts->join = join_stage_counts(sink->join);
    counts->hosts = hosts_stage_counts(sink->hosts);
    counts->tail = tail_stage_counts(sink->tail);
    counts->spans = chain->in;
    counts->spans_skipped = chain->left_out[STAGE_SKIPPED];
    counts->spans_sampled_out = chain->left_out[STAGE_SAMPLED_OUT];
}

static void look_at_checkpoint(struct sink *sink)
{
    struct checkpoint_counts counts;

    if (!sink->checkpoint)
        return;
    counts = checkpoint_counts(sink->checkpoint);
    sink->input.counts.events_held = counts.events_held;
    sink->input.counts.spans_taken_over = counts.spans_taken_over;
    sink->input.counts.checkpoint_errors = counts.errors;
    /* what is held is counted where it is used, in this run or the next */
    if (sink->hold)
        sink->input.counts.events = sink->input.counts.foreign + sink->input.counts.unreadable +
                                    sink->input.counts.alarms +
                                    assembler_counts(sink->assembler)->events;
}

static void look_at_all(struct sink *sink)
{
    look_at_checkpoint(sink);
    look_at_stages(sink);
}

static void publish(struct sink *sink)
{
    look_at_all(sink);
    account_publish(sink->account, &sink->input.counts, assembler_counts(sink->assembler));
}

static void publish_now(struct sink *sink)
{
    look_at_all(sink);
    account_publish_now(sink->account, &sink->input.counts, assembler_counts(sink->assembler));
}

#define FLUSH_STEP 1024 /* spans: well below a millisecond */

/* There may be a million open spans: an interruption in between is heeded. */
static void flush(struct sink *sink)
{
    while (assembler_flush_some(sink->assembler, FLUSH_STEP))
        exporter_heed_interruption(sink->exporter);
    while (chain_flush_some(&sink->chain, FLUSH_STEP))
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
    look_at_all(sink);
    counts = account_end(sink->account, &sink->input.counts, assembler_counts(sink->assembler));
    print_summary(sink, &counts);
    if (!counts_add_up(&counts) || !chain_adds_up(&sink->chain))
        say(sink, BT_LOGGING_LEVEL_ERROR, "the account does not add up: this is a bug of ours");
}

/* Whether all has ended as it should: an error is set if not. */
static bool has_delivered(struct sink *sink)
{
    const struct exporter_counts out = exporter_counts(sink->exporter);
    struct error error;
    const bool is_stored = exporter_is_stored(sink->exporter, &error);
    const uint64_t delivered =
        out.outcome[OUTCOME_ACCEPTED] + out.outcome[OUTCOME_SPOOLED] - out.spool.lost_own;

    if (out.unsure)
        sink_fail(sink->self, "%" PRIu64 " spans may not be in the file: its end failed",
                  out.unsure);
    else if (delivered != out.spans)
        sink_fail(sink->self, "%" PRIu64 " of %" PRIu64 " spans were not delivered",
                  out.spans - delivered, out.spans);
    else if (!is_stored)
        sink_fail(sink->self, "%s", error.text);
    return !out.unsure && delivered == out.spans && is_stored;
}

/* Of spans that the collector does not want, no further run would make it take one. */
static bool is_settled(struct sink *sink)
{
    const struct exporter_counts out = exporter_counts(sink->exporter);
    struct error error;

    return !out.unsure && exporter_is_stored(sink->exporter, &error) &&
           !out.outcome[OUTCOME_UNDELIVERED] && !out.outcome[OUTCOME_DROPPED] &&
           !out.outcome[OUTCOME_NO_MEMORY];
}

static bool finish_checkpoint(struct sink *sink)
{
    struct error error;

    if (!sink->hold)
        return true;
    if (sink->input.is_starved || assembler_is_starved(sink->assembler)) {
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
    return sink->input.counts.events == 0 && sink->input.end_ns == 0;
}

/* All of the trace was read: of less it would be false. An error is set if it fails. */
static bool tell_found(struct sink *sink)
{
    struct error error;

    if (!sink->input.only || only_write_found(sink->input.only, &error))
        return true;
    sink_fail(sink->self, "%s", error.text);
    return false;
}

/* What the stages hold; but one that is off holds nothing for the next trace. */
static void leave_to_next(struct sink *sink)
{
    chain_advance(&sink->chain, assembler_now(sink->assembler));
    while (chain_flush_some_off(&sink->chain, FLUSH_STEP))
        exporter_heed_interruption(sink->exporter);
    chain_hand_over(&sink->chain);
}

static bt_component_class_sink_consume_method_status end_of_trace(struct sink *sink)
{
    bool has_told;

    if (sink->hold)
        checkpoint_end_trace(sink->checkpoint,
                             sink->input.end_ns > sink->until_ns ? sink->input.end_ns
                                                                 : sink->until_ns,
                             is_gone(sink));
    if (sink->flushes)
        flush(sink);
    else
        leave_to_next(sink);
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
    struct error error;

    end(sink);
    if (!exporter_is_stored(sink->exporter, &error)) {
        sink_fail(sink->self, "%s", error.text);
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
    }
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
    input_use(&sink->input, messages, count);
    chain_advance(&sink->chain, assembler_now(sink->assembler));
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
