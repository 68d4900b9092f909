/*
 * The component: messages in, events to the assembler, spans to the exporter, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"
#include "signals.h"
#include "sink_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bt_self_component *self_component(struct sink *sink)
{
    return bt_self_component_sink_as_self_component(sink->self);
}

#define sink_fail(self, ...)                             \
    BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT( \
        bt_self_component_sink_as_self_component(self), __VA_ARGS__)

static void print_summary(const struct sink *sink, const struct counts *counts)
{
    char line[COUNTS_LINE_MAX];

    if (sink->log_level == BT_LOGGING_LEVEL_NONE)
        return;
    counts_line(counts, LINE_WHOLE, line);
    fprintf(stderr, "blkin: %s\n", line);
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
    if (!sink_set_up(sink, format, params, &error)) {
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
                                    sink->input.counts.newer + sink->input.counts.alarms +
                                    assembler_counts(sink->assembler)->events;
}

static void look_at_all(struct sink *sink)
{
    look_at_checkpoint(sink);
    look_at_stages(sink);
}

/* Of a recorded trace that is read again the next run sees the same gaps, and counts them. */
static const struct assembler_counts *core_counts(struct sink *sink)
{
    const struct assembler_counts *counts = assembler_counts(sink->assembler);

    if (!sink->hold || sink->is_finishing)
        return counts;
    sink->core = *counts;
    sink->core.events_missing = sink->core.metrics_missing = 0;
    return &sink->core;
}

static void publish(struct sink *sink)
{
    look_at_all(sink);
    account_publish(sink->account, &sink->input.counts, core_counts(sink));
}

static void publish_now(struct sink *sink)
{
    look_at_all(sink);
    account_publish_now(sink->account, &sink->input.counts, core_counts(sink));
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

/* Of spans that the collector does not want, no further run would make it take one. */
static bool is_settled(struct sink *sink)
{
    const struct exporter_counts out = exporter_counts(sink->exporter);
    struct error error;

    return !out.unsure && exporter_is_stored(sink->exporter, &error) &&
           !out.outcome[OUTCOME_UNDELIVERED] && !out.outcome[OUTCOME_DROPPED] &&
           !out.outcome[OUTCOME_NO_MEMORY];
}

static bool is_starved(const struct sink *sink)
{
    return sink->input.is_starved || assembler_is_starved(sink->assembler);
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
            sink_say(sink, BT_LOGGING_LEVEL_ERROR, error.text);
        sink->is_finishing = sink->has_read_all && !is_starved(sink) && is_settled(sink);
    }
    if (sink->checkpoint)
        checkpoint_keep(sink->checkpoint, true);
    look_at_all(sink);
    counts = account_end(sink->account, &sink->input.counts, core_counts(sink));
    print_summary(sink, &counts);
    if (!counts_add_up(&counts) || !chain_adds_up(&sink->chain))
        sink_say(sink, BT_LOGGING_LEVEL_ERROR,
                 "the account does not add up: this is a bug of ours");
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

static bool finish_checkpoint(struct sink *sink)
{
    struct error error;

    if (!sink->hold)
        return true;
    if (is_starved(sink)) {
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
    sink->has_read_all = true;
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
        return sink_is_interrupted(sink) ? end_early(sink) : result;
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
