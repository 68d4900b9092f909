/*
 * The component classes sink.blkin.zipkin and sink.blkin.otlp: one component. The second class sets
 * the default of format to "otlp".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SINK_H
#define BLKIN_SINK_H

#include <babeltrace2/babeltrace.h>

bt_component_class_initialize_method_status
sink_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                const bt_value *params, void *data);

bt_component_class_initialize_method_status
sink_initialize_otlp(bt_self_component_sink *self,
                     bt_self_component_sink_configuration *configuration, const bt_value *params,
                     void *data);

bt_component_class_sink_graph_is_configured_method_status
sink_graph_is_configured(bt_self_component_sink *self);

bt_component_class_sink_consume_method_status sink_consume(bt_self_component_sink *self);

void sink_finalize(bt_self_component_sink *self);

bt_component_class_get_supported_mip_versions_method_status
sink_supported_mip_versions(bt_self_component_class_sink *self, const bt_value *params, void *data,
                            bt_logging_level level, bt_integer_range_set_unsigned *versions);

/*
 * sink.blkin.events lists the events of a trace with their numbers and fields, and proposes rules
 * for events that could begin and end spans. Authors of rules call `blkin rules events`. The
 * parameter `seconds` ends the list of a live session.
 */
bt_component_class_initialize_method_status
events_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                  const bt_value *params, void *data);
bt_component_class_sink_graph_is_configured_method_status
events_graph_is_configured(bt_self_component_sink *self);
bt_component_class_sink_consume_method_status events_consume(bt_self_component_sink *self);
void events_finalize(bt_self_component_sink *self);

#endif
