/*
 * The plugin's registration with babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

/* babeltrace 2.0 finds a plugin by symbols that its macros do not export by themselves. */
#pragma GCC visibility push(default)

BT_PLUGIN_MODULE();
BT_PLUGIN(blkin);
BT_PLUGIN_DESCRIPTION("BlkKin: request traces of storage daemons, from LTTng to Zipkin");
BT_PLUGIN_AUTHOR("The BlkKin authors");
BT_PLUGIN_LICENSE("BSD-2-Clause");

BT_PLUGIN_SINK_COMPONENT_CLASS(zipkin, sink_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(zipkin, sink_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(zipkin, sink_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(zipkin, sink_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(zipkin,
                                                                 sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(zipkin, "Assemble BlkKin spans and send them to Zipkin");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    zipkin,
    "Parameters, all optional:\n"
    "  endpoint=\"URL\"         http(s)://HOST[:PORT]/api/v2/spans of a Zipkin collector, or\n"
    "                         file:PATH for one JSON array\n"
    "                         [default: http://localhost:9411/api/v2/spans]\n"
    "  closing-annotations=[\"A\",...]  or \"A,B\": what ends a span of the original API\n"
    "                         [default: cr,ss]\n"
    "  end-timeout-ms=N       a span with one of these is sent N ms of trace time after its\n"
    "                         last event [default: 50]\n"
    "  idle-timeout-ms=N      any other span likewise [default: 10000]\n"
    "  open-timeout-ms=N      a streamed span without its end likewise [default: 60000]\n"
    "  clock-correction=no    keep times as they are in the trace, also where blkin:process tells\n"
    "                         that the host's clock was set since the session began\n"
    "                         [default: yes]\n"
    "  max-open-spans=N       more open spans than N, or more bytes of them than max-open-bytes:\n"
    "  max-open-bytes=N       the oldest are sent early, marked [default: 1000000, 512 MiB]\n"
    "  batch-spans=N          at most N spans in one request [default: 1000]\n"
    "  batch-timeout-ms=N     a request waits at most N ms for more spans [default: 200]\n"
    "  retry-timeout-ms=N     try for N ms to reach a collector that is gone [default: 30000]\n");

#pragma GCC visibility pop
