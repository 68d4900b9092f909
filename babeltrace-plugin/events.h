/*
 * sink.blkin.events: which events a trace has, how often, with which fields; and which of them
 * could begin and end spans, as rules. For who writes rules: `blkin rules events`. Of a live
 * session it counts for some seconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SINK_EVENTS_H
#define BLKIN_SINK_EVENTS_H

#include <babeltrace2/babeltrace.h>

bt_component_class_initialize_method_status
events_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                  const bt_value *params, void *data);
bt_component_class_sink_graph_is_configured_method_status
events_graph_is_configured(bt_self_component_sink *self);
bt_component_class_sink_consume_method_status events_consume(bt_self_component_sink *self);
void events_finalize(bt_self_component_sink *self);

#endif
