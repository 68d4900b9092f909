/*
 * The plugin's registration with babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include "babeltrace-plugin/help.inc"
#include "blkin_base.h"

/* babeltrace 2.0 finds a plugin by symbols that its macros do not export. */
#pragma GCC visibility push(default)

BT_PLUGIN_MODULE();
BT_PLUGIN(blkin);
BT_PLUGIN_DESCRIPTION("BlkKin: request traces of storage daemons, from LTTng to Zipkin and "
                      "OpenTelemetry");
BT_PLUGIN_AUTHOR("The BlkKin authors");
BT_PLUGIN_LICENSE("BSD-2-Clause");
BT_PLUGIN_VERSION(BLKIN_VERSION_MAJOR, BLKIN_VERSION_MINOR, BLKIN_VERSION_PATCH, NULL);

BT_PLUGIN_SINK_COMPONENT_CLASS(zipkin, sink_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(zipkin, sink_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(zipkin, sink_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(zipkin, sink_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(zipkin,
                                                                 sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(zipkin, "Assemble BlkKin spans and send them to Zipkin");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    zipkin, "Parameters, all optional:\n\n" PARAMETERS_HELP
            "\nThe environment variables http_proxy, https_proxy and no_proxy apply.\n");

BT_PLUGIN_SINK_COMPONENT_CLASS(otlp, sink_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(otlp, sink_initialize_otlp);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(otlp, sink_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(otlp, sink_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(otlp, sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(otlp,
                                           "Assemble BlkKin spans and send them by OTLP/HTTP");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    otlp, "sink.blkin.zipkin with format=\"otlp\", for any back end that takes OTLP/HTTP, such as "
          "an\nOpenTelemetry collector, Jaeger or Tempo. The parameters are those "
          "of\nsink.blkin.zipkin: see babeltrace2 help sink.blkin.zipkin\n");

BT_PLUGIN_SINK_COMPONENT_CLASS(events, events_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(events, events_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(events, events_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(events, events_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(events,
                                                                 sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(events, "List the events of a trace, and propose rules");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    events,
    "Prints the name, the number and the fields of the events, then rules that could\nmake spans "
    "of the events: see the parameter rules of sink.blkin.zipkin.\n\nseconds: end after this time, "
    "1 to 86400; default: at the end of the trace.\n");

#pragma GCC visibility pop
