/*
 * Setting up a sink: its stages, its checkpoint, the exporter and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink_parts.h"

#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"
#include "params_map.h"
#include "signals.h"

#include <stdlib.h>

void sink_say(const struct sink *sink, bt_logging_level level, const char *message)
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

bool sink_is_interrupted(void *context)
{
    struct sink *sink = context;

    return bt_self_component_sink_is_interrupted(sink->self) || signals_ask_to_end();
}

static void inform(void *context, const char *message)
{
    sink_say(context, BT_LOGGING_LEVEL_INFO, message);
}

static void warn(void *context, const char *message)
{
    sink_say(context, BT_LOGGING_LEVEL_WARNING, message);
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

void sink_free(struct sink *sink)
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

static bool sink_append(struct sink *sink, struct stage *stage, struct error *error)
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
    if (sink->input.only && !sink_append(sink, skip_stage_new("only", only_skips, sink), error))
        return false;
    sink->join = new_join(params);
    if (!sink_append(sink, sink->join, error))
        return false;
    sink->hosts = new_hosts(params);
    if (!sink_append(sink, sink->hosts, error))
        return false;
    sink->tail = tail_stage_new(
        &(struct tail_options){.rules = params->only_traces ? NULL : params->tail_sampling,
                               .wait_ms = params->tail_wait_ms,
                               .max_bytes = params->tail_max_bytes,
                               .assembler = sink->assembler,
                               .warn = warn,
                               .context = sink},
        error);
    return sink_append(sink, sink->tail, error);
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
    return !sink->hold || sink_append(sink, skip_stage_new("skip", delivered_skips, sink), error);
}

static bool open_exporter(struct sink *sink, const struct params *params, struct error *error)
{
    if (sink->hold && checkpoint_is_done(sink->checkpoint)) {
        inform(sink, "this trace was delivered by an earlier run: there is nothing to do");
        chain_hand_over(&sink->chain);
        return true;
    }
    sink->exporter = exporter_new(&params->exporter,
                                  &(struct exporter_callbacks){sink_is_interrupted, warn, sink,
                                                               sink->hold ? note_settled : NULL},
                                  error);
    return sink->exporter != NULL;
}

bool sink_set_up(struct sink *sink, enum format format, const bt_value *map, struct error *error)
{
    struct params params;

    if (!params_read(&params, map, error) || !params_fit(&params, error))
        return false;
    if (params.exporter.format == FORMAT_AUTO)
        params.exporter.format = format;
    signals_open();
    sink->has_signals = true;
    if (signals_ignore_sigint())
        sink_say(
            sink, BT_LOGGING_LEVEL_WARNING,
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
