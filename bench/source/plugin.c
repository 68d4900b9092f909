/*
 * A babeltrace2 source for measuring memory. The source makes events of the original library as
 * fast as babeltrace2 asks, so that a run may be longer than any trace on disk. The component is
 * src.bench.spans.
 *
 * Parameters: spans (their number), open (open spans at any time), ending (no: a span has its first
 * event only, and stays open). A span has four events, as those of bench-load: sr, a text and an
 * integer at its begin, and ss after `open` other begins. Spans begin 10 us apart.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/hash.h"

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define EPOCH_NS INT64_C(1735732800000000000)
#define SPAN_NS  10000

enum { TIMESTAMP, TEXT, INTEGER, KINDS };

struct bench_source {
    uint64_t spans;
    uint64_t open;
    bool ending;
    bt_stream *stream;
    bt_event_class *classes[KINDS];
};

/* The next event: number `step` of the span `span`; step 3 is of the span `open` before it. */
struct source_position {
    uint64_t span;
    unsigned step;
    bool has_begun;
    bool has_ended;
};

static void add_field(bt_trace_class *trace_class, bt_field_class *payload, const char *name,
                      bool is_text)
{
    bt_field_class *class = is_text ? bt_field_class_string_create(trace_class)
                                    : bt_field_class_integer_signed_create(trace_class);

    (void)bt_field_class_structure_append_member(payload, name, class);
    bt_field_class_put_ref(class);
}

/* Makes the event class of this kind: the seven common fields, and those of the kind. */
static bt_event_class *make_class(bt_trace_class *trace_class, bt_stream_class *stream_class,
                                  unsigned kind)
{
    static const char *const names[KINDS] = {"zipkin:timestamp", "zipkin:keyval_string",
                                             "zipkin:keyval_integer"};
    static const struct {
        const char *name;
        bool is_text;
    } common[] = {
        {"trace_name", true}, {"service_name", true}, {"port_no", false},       {"ip", true},
        {"trace_id", false},  {"span_id", false},     {"parent_span_id", false}};
    bt_event_class *class = bt_event_class_create(stream_class);
    bt_field_class *payload = bt_field_class_structure_create(trace_class);

    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        add_field(trace_class, payload, common[i].name, common[i].is_text);
    if (kind == TIMESTAMP) {
        add_field(trace_class, payload, "event", true);
    } else {
        add_field(trace_class, payload, "key", true);
        add_field(trace_class, payload, "val", kind == TEXT);
    }
    (void)bt_event_class_set_name(class, names[kind]);
    (void)bt_event_class_set_payload_field_class(class, payload);
    bt_field_class_put_ref(payload);
    return class;
}

static void make_stream(struct bench_source *source, bt_self_component *self)
{
    bt_trace_class *trace_class = bt_trace_class_create(self);
    bt_stream_class *stream_class = bt_stream_class_create(trace_class);
    bt_clock_class *clock = bt_clock_class_create(self);
    bt_trace *trace;

    (void)bt_stream_class_set_default_clock_class(stream_class, clock);
    for (unsigned kind = 0; kind < KINDS; kind++)
        source->classes[kind] = make_class(trace_class, stream_class, kind);
    trace = bt_trace_create(trace_class);
    source->stream = bt_stream_create(stream_class, trace);
    bt_trace_put_ref(trace);
    bt_clock_class_put_ref(clock);
    bt_stream_class_put_ref(stream_class);
    bt_trace_class_put_ref(trace_class);
}

static uint64_t number(const bt_value *params, const char *name)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(params, name);

    if (value && bt_value_is_signed_integer(value))
        return (uint64_t)bt_value_integer_signed_get(value);
    return 0;
}

static bt_component_class_initialize_method_status
initialize(bt_self_component_source *self_source, bt_self_component_source_configuration *config,
           const bt_value *params, void *data)
{
    bt_self_component *self = bt_self_component_source_as_self_component(self_source);
    const bt_value *ending = bt_value_map_borrow_entry_value_const(params, "ending");
    struct bench_source *source = calloc(1, sizeof(*source));

    (void)config;
    (void)data;
    if (!source)
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    source->spans = number(params, "spans");
    source->open = number(params, "open");
    source->ending = !ending || !bt_value_is_bool(ending) || bt_value_bool_get(ending);
    make_stream(source, self);
    bt_self_component_set_data(self, source);
    (void)bt_self_component_source_add_output_port(self_source, "out", NULL, NULL);
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static void finalize(bt_self_component_source *self)
{
    struct bench_source *source =
        bt_self_component_get_data(bt_self_component_source_as_self_component(self));

    for (unsigned kind = 0; kind < KINDS; kind++)
        bt_event_class_put_ref(source->classes[kind]);
    bt_stream_put_ref(source->stream);
    free(source);
}

static bt_message_iterator_class_initialize_method_status
initialize_iterator(bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
                    bt_self_component_port_output *port)
{
    struct source_position *position = calloc(1, sizeof(*position));

    (void)config;
    (void)port;
    if (!position)
        return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    bt_self_message_iterator_set_data(self, position);
    return BT_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static void finalize_iterator(bt_self_message_iterator *self)
{
    free(bt_self_message_iterator_get_data(self));
}

static bt_field *member(bt_field *payload, uint64_t index)
{
    return bt_field_structure_borrow_member_field_by_index(payload, index);
}

static void set_text(bt_field *payload, uint64_t index, const char *text)
{
    (void)bt_field_string_set_value(member(payload, index), text);
}

static void set_number(bt_field *payload, uint64_t index, int64_t value)
{
    bt_field_integer_signed_set_value(member(payload, index), value);
}

/* Makes the event of this step of the span; step 3 ends the span. */
static const bt_message *make_event(bt_self_message_iterator *self,
                                    const struct bench_source *source, uint64_t span, unsigned step,
                                    uint64_t time_ns)
{
    static const unsigned kinds[] = {TIMESTAMP, TEXT, INTEGER, TIMESTAMP};
    bt_message *message = bt_message_event_create_with_default_clock_snapshot(
        self, source->classes[kinds[step]], source->stream, time_ns);
    bt_field *payload = bt_event_borrow_payload_field(bt_message_event_borrow_event(message));

    set_text(payload, 0, "pwrite");
    set_text(payload, 1, "osd.3");
    set_number(payload, 2, 6789);
    set_text(payload, 3, "10.0.0.1");
    set_number(payload, 4, (int64_t)hash_mix(span + 1));
    set_number(payload, 5, (int64_t)hash_mix(span + 1));
    set_number(payload, 6, 0);
    switch (step) {
    case 1:
        set_text(payload, 7, "pool");
        set_text(payload, 8, "0123456789abcdef");
        break;
    case 2:
        set_text(payload, 7, "offset");
        set_number(payload, 8, (int64_t)span);
        break;
    default:
        set_text(payload, 7, step == 0 ? "sr" : "ss");
        break;
    }
    return message;
}

static const bt_message *next_event(bt_self_message_iterator *self,
                                    const struct bench_source *source,
                                    struct source_position *position)
{
    const uint64_t time_ns = EPOCH_NS + position->span * SPAN_NS + position->step;
    const uint64_t span = position->span - (position->step == 3 ? source->open : 0);
    const bt_message *message = make_event(self, source, span, position->step, time_ns);
    const unsigned steps = !source->ending ? 1 : position->span < source->open ? 3 : 4;

    if (++position->step >= steps) {
        position->step = 0;
        position->span++;
    }
    return message;
}

static bt_message_iterator_class_next_method_status next(bt_self_message_iterator *self,
                                                         bt_message_array_const messages,
                                                         uint64_t capacity, uint64_t *count)
{
    const struct bench_source *source =
        bt_self_component_get_data(bt_self_message_iterator_borrow_component(self));
    struct source_position *position = bt_self_message_iterator_get_data(self);

    for (*count = 0; *count < capacity && !position->has_ended; (*count)++) {
        if (!position->has_begun) {
            position->has_begun = true;
            messages[*count] = bt_message_stream_beginning_create(self, source->stream);
        } else if (position->span < source->spans) {
            messages[*count] = next_event(self, source, position);
        } else {
            position->has_ended = true;
            messages[*count] = bt_message_stream_end_create(self, source->stream);
        }
    }
    return *count ? BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_OK
                  : BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_END;
}

/* babeltrace2 2.0 overlooks plugins whose accessors are hidden. */
#pragma GCC visibility push(default)
BT_PLUGIN_MODULE();
BT_PLUGIN(bench);
BT_PLUGIN_SOURCE_COMPONENT_CLASS(spans, next);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_INITIALIZE_METHOD(spans, initialize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_FINALIZE_METHOD(spans, finalize);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_INITIALIZE_METHOD(spans,
                                                                          initialize_iterator);
BT_PLUGIN_SOURCE_COMPONENT_CLASS_MESSAGE_ITERATOR_CLASS_FINALIZE_METHOD(spans, finalize_iterator);
#pragma GCC visibility pop
