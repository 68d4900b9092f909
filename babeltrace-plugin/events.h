/*
 * sink.blkin.events lists the events of a trace with their numbers and fields, and proposes rules
 * for those that could begin and end spans. Authors of rules call `blkin rules events`. A live
 * session is counted for some seconds.
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
