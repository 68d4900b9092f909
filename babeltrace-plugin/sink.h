/*
 * The component classes sink.blkin.zipkin and sink.blkin.otlp: one component. The second class sets
 * the default of format to "otlp".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SINK_H
#define BLKIN_SINK_H

#include "params.h"

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

/* Fills params from the map, with defaults; the texts belong to the map. Returns false with error
 * set, which names the wrong value. */
bool params_read(struct params *params, const bt_value *map, struct error *error);

/*
 * sink.blkin.events lists the events of a trace with their numbers and fields, and proposes rules
 * for those that could begin and end spans. Authors of rules call `blkin rules events`. A live
 * session is counted for some seconds.
 */
bt_component_class_initialize_method_status
events_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                  const bt_value *params, void *data);
bt_component_class_sink_graph_is_configured_method_status
events_graph_is_configured(bt_self_component_sink *self);
bt_component_class_sink_consume_method_status events_consume(bt_self_component_sink *self);
void events_finalize(bt_self_component_sink *self);

/*
 * The signals that end babeltrace2.
 *
 * babeltrace2 has a handler for SIGINT only, which interrupts the graph, and none if SIGINT was
 * ignored at its start. SIGTERM and SIGHUP would end the process at once, with all waiting spans.
 * So an open sink handles both and passes them on as SIGINT, unless they are ignored or have a
 * handler. A second signal of the same kind ends the process at once.
 *
 * The signal itself interrupts no blocking call. After an interruption, babeltrace2 2.0 asks for
 * the next packet at once. It takes the rest of the old answer for the new one, and aborts.
 *
 * One signal is enough even while the relay daemon hangs. Before the sinks end, babeltrace2 sends a
 * last message to the daemon and waits for the answer. So a second after the first signal, and each
 * second until the last sink is closed, blocking calls of the graph's thread are interrupted.
 */
/* Each sink calls both, in the graph's thread. */
void signals_open(void);
void signals_close(void);

/* True after SIGTERM or SIGHUP. If SIGINT is ignored, the graph does not know about them. */
bool signals_ask_to_end(void);

bool signals_ignore_sigint(void);

#endif
