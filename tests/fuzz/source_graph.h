/*
 * A graph of babeltrace2 whose source makes any messages: each run of the graph calls run_input()
 * once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_SOURCE_GRAPH_H
#define TESTS_FUZZ_SOURCE_GRAPH_H

#include "fuzz.h"

#include <babeltrace2/babeltrace.h>

static bt_self_component *self_component; /* the source */

/* The fuzzer defines it. */
static void run_input(bt_self_message_iterator *iterator);

static bt_component_class_initialize_method_status
initialize(bt_self_component_source *self, bt_self_component_source_configuration *configuration,
           const bt_value *params, void *data)
{
    (void)configuration;
    (void)params;
    (void)data;
    self_component = bt_self_component_source_as_self_component(self);
    (void)bt_self_component_source_add_output_port(self, "out", NULL, NULL);
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_message_iterator_class_next_method_status next(bt_self_message_iterator *iterator,
                                                         bt_message_array_const messages,
                                                         uint64_t capacity, uint64_t *count)
{
    (void)messages;
    (void)capacity;
    (void)count;
    run_input(iterator);
    return BT_MESSAGE_ITERATOR_CLASS_NEXT_METHOD_STATUS_AGAIN;
}

static bt_graph_simple_sink_component_consume_func_status consume(bt_message_iterator *iterator,
                                                                  void *data)
{
    bt_message_array_const messages;
    uint64_t count;

    (void)data;
    return (bt_graph_simple_sink_component_consume_func_status)bt_message_iterator_next(
        iterator, &messages, &count);
}

static bt_graph *make_graph(void)
{
    bt_message_iterator_class *iterator = bt_message_iterator_class_create(next);
    bt_component_class_source *class = bt_component_class_source_create("fuzz", iterator);
    const bt_component_source *component;
    const bt_component_sink *sink;
    bt_graph *graph = bt_graph_create(0);

    REQUIRE(iterator && class && graph);
    (void)bt_component_class_source_set_initialize_method(class, initialize);
    REQUIRE(bt_graph_add_source_component(graph, class, "source", NULL, BT_LOGGING_LEVEL_NONE,
                                          &component) == BT_GRAPH_ADD_COMPONENT_STATUS_OK);
    REQUIRE(bt_graph_add_simple_sink_component(graph, "sink", NULL, consume, NULL, NULL, &sink) ==
            BT_GRAPH_ADD_COMPONENT_STATUS_OK);
    REQUIRE(bt_graph_connect_ports(
                graph, bt_component_source_borrow_output_port_by_index_const(component, 0),
                bt_component_sink_borrow_input_port_by_index_const(sink, 0),
                NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK);
    bt_component_class_source_put_ref(class);
    bt_message_iterator_class_put_ref(iterator);
    return graph;
}

#endif
