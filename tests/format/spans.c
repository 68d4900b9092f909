/*
 * A sink for babeltrace2 that prints the spans and counts of the C reader, a line each. The script
 * compare.py prints the spans and counts of reader.py in the same way.
 *
 *     babeltrace2 --plugin-path=FOLDER TRACE -c sink.spans.print
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/decode/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct span_printer {
    bt_message_iterator *iterator;
    struct decode_input input;
    struct intake intake;
};

/* ---- a span ---- */

static void show_text(struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char byte = (unsigned char)text.data[i];

        if (byte > ' ' && byte < 0x7f && byte != '%')
            putchar_unlocked(byte);
        else
            printf("%%%02x", byte);
    }
}

static void print_endpoint(const char *what, const struct endpoint *endpoint)
{
    printf(" %s ", what);
    show_text(endpoint->service);
    printf(" %s%s %u", endpoint->ipv4, endpoint->ipv6, endpoint->port);
}

static void print_entry(const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry), value = span_entry_value(entry);
    struct span_link link;

    switch (entry->type) {
    case SPAN_ANNOTATION:
        printf(" at %" PRId64 " [", entry->integer);
        show_text(key);
        printf("] ");
        show_text(value);
        break;
    case SPAN_LINK:
        link = span_entry_link(entry);
        printf(" link %016" PRIx64 "%016" PRIx64 " %016" PRIx64, link.trace_id_high, link.trace_id,
               link.span_id);
        break;
    default:
        if (key.length >= 6 && memcmp(key.data, "lttng.", 6) == 0)
            return; /* a context from the trace */
        printf(" tag ");
        show_text(key);
        printf(" ");
        if (entry->type == SPAN_TAG_INTEGER)
            printf("#%" PRId64, entry->integer);
        else
            show_text(value);
    }
}

static void take_span(void *context, struct span *span)
{
    (void)context;
    printf("%016" PRIx64 "%016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %d%s ", span->trace_id_high,
           span->trace_id, span->id, span->parent_id, span->kind, span->debug ? "!" : "");
    show_text(span_name(span));
    print_endpoint("of", span->endpoint);
    if (span->remote)
        print_endpoint("remote", span->remote);
    printf(" from %" PRId64 " to %" PRId64, span->start_ns, span->end_ns);
    SPAN_FOR_EACH_ENTRY(span, entry) print_entry(entry);
    putchar('\n');
}

static void print_counts(struct span_printer *printer)
{
    const struct assembler_counts *core = assembler_counts(printer->input.assembler);
    const struct input_counts *input = &printer->intake.counts;

    printf("counts: %" PRIu64 " events, %" PRIu64 " unreadable, %" PRIu64 " newer, %" PRIu64
           " invalid, %" PRIu64 " late, %" PRIu64 " lost, %" PRIu64 " spans, %" PRIu64
           " incomplete\n",
           input->events, input->unreadable, input->newer, core->events_invalid, core->events_late,
           core->log_errors + core->events_no_room, core->spans_finished, core->spans_incomplete);
    fflush(stdout);
}

/* ---- the component ---- */

static void warn(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "%s\n", message);
}

static bt_component_class_initialize_method_status
initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
           const bt_value *params, void *data)
{
    /* no time-out ends a span: only its events, or the end of the trace */
    static const struct assembler_options options = {
        .idle_timeout_ns = INT64_MAX,
        .end_timeout_ns = INT64_MAX,
        .open_timeout_ns = INT64_MAX,
        .max_open_spans = UINT64_MAX,
        .max_open_bytes = UINT64_MAX,
    };
    struct span_printer *printer = calloc(1, sizeof(*printer));

    (void)configuration;
    (void)params;
    (void)data;
    if (!printer)
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    printer->input.streams = streams_new(NULL);
    printer->input.intake = &printer->intake;
    printer->input.assembler = assembler_new(&options, take_span, NULL);
    printer->input.warn = warn;
    if (!printer->input.streams || !printer->input.assembler ||
        bt_self_component_sink_add_input_port(self, "in", NULL, NULL) !=
            BT_SELF_COMPONENT_ADD_PORT_STATUS_OK)
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    bt_self_component_set_data(bt_self_component_sink_as_self_component(self), printer);
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static struct span_printer *printer_of(bt_self_component_sink *self)
{
    return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

static bt_component_class_sink_graph_is_configured_method_status
graph_is_configured(bt_self_component_sink *self)
{
    return (bt_component_class_sink_graph_is_configured_method_status)
        bt_message_iterator_create_from_sink_component(
            self, bt_self_component_sink_borrow_input_port_by_index(self, 0),
            &printer_of(self)->iterator);
}

static bt_component_class_sink_consume_method_status consume(bt_self_component_sink *self)
{
    struct span_printer *printer = printer_of(self);
    bt_message_array_const messages;
    uint64_t count;
    const bt_message_iterator_next_status status =
        bt_message_iterator_next(printer->iterator, &messages, &count);

    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_OK)
        input_use(&printer->input, messages, count);
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END) {
        while (assembler_flush_some(printer->input.assembler, UINT32_MAX))
            ;
        print_counts(printer);
    }
    return (bt_component_class_sink_consume_method_status)status;
}

static void finalize(bt_self_component_sink *self)
{
    struct span_printer *printer = printer_of(self);

    bt_message_iterator_put_ref(printer->iterator);
    streams_free(printer->input.streams);
    assembler_free(printer->input.assembler);
    free(printer);
}

#pragma GCC visibility push(default)

/* CTF 2, as LTTng writes it since 2.16, needs version 1. */
static bt_component_class_get_supported_mip_versions_method_status
versions(bt_self_component_class_sink *self, const bt_value *params, void *data,
         bt_logging_level level, bt_integer_range_set_unsigned *supported)
{
    (void)self, (void)params, (void)data, (void)level;
    return (bt_component_class_get_supported_mip_versions_method_status)
        bt_integer_range_set_unsigned_add_range(supported, 0, 1);
}

BT_PLUGIN_MODULE();
BT_PLUGIN(spans);
BT_PLUGIN_SINK_COMPONENT_CLASS(print, consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(print, versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(print, initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(print, finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(print, graph_is_configured);

#pragma GCC visibility pop
