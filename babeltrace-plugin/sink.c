/* SPDX-License-Identifier: BSD-2-Clause */
#include "sink.h"

#include "babeltrace-plugin/decode/input.h"
#include "pipeline.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

/* ---- the signals that end babeltrace2 -------------------------------------------------------- */

/*
 * babeltrace2 has a handler for SIGINT only, which interrupts the graph, and none if SIGINT was
 * ignored at its start. SIGTERM and SIGHUP would end the process at once, with all waiting spans.
 * So an open sink handles both and passes them on as SIGINT, unless they are ignored or have a
 * handler. A second signal of the same kind ends the process at once.
 *
 * The signal itself interrupts no blocking call. After an interrupted call, babeltrace2 2.0 asks
 * for the next packet at once. It mistakes the rest of the old answer for the new one, and aborts.
 *
 * One signal is enough even while the relay daemon hangs. Before the sinks end, babeltrace2 sends a
 * last message to the daemon and waits for the answer. So a second after the first signal, and each
 * second until the last sink is closed, blocking calls of the graph's thread are interrupted.
 */
#define SIGNAL_WAKE SIGRTMIN /* its handler does nothing: the signal only interrupts calls */

typedef void handler_fn(int number);

static volatile sig_atomic_t has_end_signal; /* SIGTERM or SIGHUP has arrived */
static unsigned open_sinks;
static struct sigaction interrupt; /* of SIGINT, before signals_open() */
static bool has_interrupt;         /* `interrupt` has a handler */
static timer_t timer;
static bool has_timer;

/* Returns SIG_ERR if the signal has a handler with SA_SIGINFO. */
static handler_fn *handler_of(int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) != 0 || action.sa_flags & SA_SIGINFO)
        return SIG_ERR;
    return action.sa_handler;
}

/* Sets the handler `after` if the handler is `before`. */
static void exchange(int number, handler_fn *before, handler_fn *after, int flags)
{
    struct sigaction action = {.sa_handler = after, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    if (handler_of(number) == before)
        (void)sigaction(number, &action, NULL);
}

static void on_wake(int number)
{
    (void)number;
}

static void on_interrupt(int number)
{
    const struct itimerspec each_second = {{1, 0}, {1, 0}};
    const int error = errno;

    interrupt.sa_handler(number);
    if (has_timer)
        (void)timer_settime(timer, 0, &each_second, NULL);
    errno = error;
}

static void on_end(int number)
{
    (void)number;
    has_end_signal = 1;
    if (has_interrupt)
        on_interrupt(SIGINT);
}

static void open_interrupt(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL_WAKE};
    handler_fn *handler = handler_of(SIGINT);
    struct sigaction action;

    has_interrupt = handler != SIG_DFL && handler != SIG_IGN && handler != SIG_ERR;
    if (!has_interrupt)
        return;
    exchange(SIGNAL_WAKE, SIG_DFL, on_wake, 0);
    has_timer =
        handler_of(SIGNAL_WAKE) == on_wake && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    (void)sigaction(SIGINT, NULL, &interrupt);
    action = interrupt;
    action.sa_handler = on_interrupt;
    action.sa_flags |= (int)SA_RESTART;
    (void)sigaction(SIGINT, &action, NULL);
}

/* Each sink calls signals_open() and signals_close(), in the graph's thread. */
static void signals_open(void)
{
    if (open_sinks++)
        return;
    has_end_signal = 0;
    open_interrupt();
    exchange(SIGTERM, SIG_DFL, on_end, (int)(SA_RESETHAND | SA_RESTART));
    exchange(SIGHUP, SIG_DFL, on_end, (int)(SA_RESETHAND | SA_RESTART));
}

static void signals_close(void)
{
    if (--open_sinks)
        return;
    exchange(SIGTERM, on_end, SIG_DFL, 0);
    exchange(SIGHUP, on_end, SIG_DFL, 0);
    if (handler_of(SIGINT) == on_interrupt)
        (void)sigaction(SIGINT, &interrupt, NULL);
    if (has_timer)
        (void)timer_delete(timer);
    has_timer = false;
    exchange(SIGNAL_WAKE, on_wake, SIG_IGN, 0); /* also removes a pending signal */
    exchange(SIGNAL_WAKE, SIG_IGN, SIG_DFL, 0);
}

/* Returns true after SIGTERM or SIGHUP. If SIGINT is ignored, the graph does not know about these
 * signals. */
static bool signals_ask_to_end(void)
{
    return has_end_signal;
}

/* ---- the sink -------------------------------------------------------------------------------- */

struct sink {
    bt_self_component_sink *self;
    bt_message_iterator *iterator;
    struct decode_input input;
    struct pipeline pipeline;
    bt_logging_level log_level;
    bool has_signals;
};

static bt_self_component *self_component(struct sink *sink)
{
    return bt_self_component_sink_as_self_component(sink->self);
}

#define sink_fail(self, ...)                             \
    BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT( \
        bt_self_component_sink_as_self_component(self), __VA_ARGS__)

/* ---- callbacks of the pipeline --------------------------------------------------------------- */

static void sink_say(void *context, bt_logging_level level, const char *message)
{
    const struct sink *sink = context;

    if (level >= sink->log_level)
        fprintf(stderr, "blkin: %s\n", message);
}

static void sink_print_summary(void *context, const struct counts *counts)
{
    const struct sink *sink = context;
    char line[COUNTS_LINE_MAX];

    if (sink->log_level == BT_LOGGING_LEVEL_NONE)
        return;
    counts_line(counts, LINE_WHOLE, line);
    fprintf(stderr, "blkin: %s\n", line);
}

/* Returns whether babeltrace2 or a signal has interrupted the graph. */
static bool sink_is_interrupted(void *context)
{
    struct sink *sink = context;

    return bt_self_component_sink_is_interrupted(sink->self) || signals_ask_to_end();
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void sink_free(struct sink *sink)
{
    streams_free(sink->input.streams);
    pipeline_close(&sink->pipeline);
    bt_message_iterator_put_ref(sink->iterator);
    if (sink->has_signals)
        signals_close();
    free(sink);
}

static bool sink_set_up(struct sink *sink, enum protocol_format format, const bt_value *map,
                        struct error *error)
{
    struct pipeline *pipeline = &sink->pipeline;
    struct params params;

    if (!params_read(&params, map, error) || !params_fit(&params, error))
        return false;
    if (params.exporter.format == FORMAT_AUTO)
        params.exporter.format = format;
    signals_open();
    sink->has_signals = true;
    if (handler_of(SIGINT) == SIG_IGN)
        sink_say(sink, BT_LOGGING_LEVEL_WARNING,
                 "SIGINT is ignored, as in a background job of a script: SIGTERM ends the sink "
                 "without loss");
    pipeline->calls =
        (struct pipeline_calls){sink_is_interrupted, sink_say, sink_print_summary, sink};
    pipeline->shows_progress = sink->log_level <= BT_LOGGING_LEVEL_INFO;
    if (!pipeline_open(pipeline, &params, error))
        return false;
    sink->input = (struct decode_input){
        .streams = streams_new(pipeline->rules ? pairing_rules(pipeline->rules) : NULL),
        .intake = &pipeline->intake,
        .assembler = pipeline->assembler,
        .from = {params.from_time, (uint64_t)params.from_events},
        .warn = pipeline_warn,
        .context = pipeline};
    return sink->input.streams || error_set(error, "out of memory");
}

static bt_component_class_initialize_method_status
sink_initialize_with(bt_self_component_sink *self, enum protocol_format format,
                     const bt_value *params)
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
    return sink_initialize_with(self, FORMAT_AUTO, params);
}

bt_component_class_initialize_method_status
sink_initialize_otlp(bt_self_component_sink *self,
                     bt_self_component_sink_configuration *configuration, const bt_value *params,
                     void *data)
{
    (void)configuration;
    (void)data;
    return sink_initialize_with(self, FORMAT_OTLP, params);
}

static struct sink *sink_of(bt_self_component_sink *self)
{
    return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

/* Returns true if the source is a live session, perhaps behind filters. */
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
    filter = (const bt_component_filter *)
        component; /* the header has only the conversion to the base type */
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

    if (!sink->pipeline.exporter)
        return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
    if (comes_from_live(bt_self_component_port_input_as_port_input(port)))
        pipeline_watch(&sink->pipeline);
    return (bt_component_class_sink_graph_is_configured_method_status)
        bt_message_iterator_create_from_sink_component(self, port, &sink->iterator);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bt_component_class_sink_consume_method_status
sink_result(struct sink *sink, bool has_worked, const struct error *error, int status)
{
    if (has_worked)
        return (bt_component_class_sink_consume_method_status)status;
    sink_fail(sink->self, "%s", error->text);
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR;
}

/* Ends the pipeline before sink_finalize(), because babeltrace2 sends a last message to the relay
 * daemon before that call, and may wait for the answer. */
static bt_component_class_sink_consume_method_status end_early(struct sink *sink)
{
    struct error error;
    bool has_worked;

    pipeline_end(&sink->pipeline);
    has_worked = pipeline_is_stored(&sink->pipeline, &error);
    if (has_worked && !bt_self_component_sink_is_interrupted(sink->self)) {
        error_set(&error, "the trace was not read to its end: ended by a signal");
        has_worked = false;
    }
    /* babeltrace2 ends the graph after this return */
    return sink_result(sink, has_worked, &error,
                       BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN);
}

bt_component_class_sink_consume_method_status sink_consume(bt_self_component_sink *self)
{
    struct sink *sink = sink_of(self);
    bt_component_class_sink_consume_method_status result;
    bt_message_array_const messages;
    struct error error;
    uint64_t count;

    if (sink->pipeline.has_ended || !sink->pipeline.exporter)
        return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
    result = (bt_component_class_sink_consume_method_status)bt_message_iterator_next(
        sink->iterator, &messages, &count);
    switch (result) {
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK:
        input_use(&sink->input, messages, count);
        result = sink_result(sink, pipeline_advance(&sink->pipeline, &error), &error,
                             BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK);
        return result == BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK && signals_ask_to_end()
                   ? end_early(sink)
                   : result;
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_AGAIN:
        pipeline_set_live(&sink->pipeline); /* only a live source has nothing to read for now */
        pipeline_idle(&sink->pipeline);
        return sink_is_interrupted(sink) ? end_early(sink) : result;
    case BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END:
        return sink_result(sink, pipeline_finish(&sink->pipeline, &error), &error,
                           BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END);
    default:
        return result;
    }
}

void sink_finalize(bt_self_component_sink *self)
{
    struct sink *sink = sink_of(self);

    pipeline_end(&sink->pipeline);
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
