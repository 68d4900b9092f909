/*
 * The plugin's registration with babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "events.h"
#include "sink.h"

#include "blkin_base.h"

/* babeltrace 2.0 finds a plugin by symbols that its macros do not export by themselves. */
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
    zipkin,
    "Parameters, all optional:\n"
    "\n"
    "Where to\n"
    "  endpoint=\"URL\"         http(s)://HOST[:PORT][/PATH] of a collector, or file:PATH for\n"
    "                         one JSON array, or one OTLP request; kafka://BROKER/TOPIC\n"
    "                         [default: that of the format, on localhost]\n"
    "  format=\"WHICH\"         \"zipkin\": JSON v2, to port 9411, path /api/v2/spans;\n"
    "                         \"otlp\": OTLP/HTTP protobuf, to port 4318, path /v1/traces;\n"
    "                         \"auto\": what the path tells, else zipkin [default: \"auto\"]\n"
    "  require-collector=no   start though no collector answers yet [default: yes]\n"
    "  compression=\"WHICH\"    \"gzip\", \"zstd\", \"none\" or \"auto\": gzip unless the "
    "collector\n"
    "                         is on this host [default: \"auto\"]\n"
    "  kafka-file=\"FILE\"      librdkafka's options, lines of key=value: TLS, passwords\n"
    "  tls-ca=\"FILE\"          trust the certificates that these CAs have signed, and no\n"
    "                         others [default: those that the system trusts]\n"
    "  tls-cert=\"FILE\"        our own certificate and its key, as PEM\n"
    "  tls-key=\"FILE\"\n"
    "  bearer-token-file=\"FILE\", bearer-token-env=\"VARIABLE\"\n"
    "                         where there is a token to send\n"
    "  basic-auth-file=\"FILE\", basic-auth-env=\"VARIABLE\"\n"
    "                         where there is USER:PASSWORD to send\n"
    "  The environment's http_proxy, https_proxy and no_proxy are heeded.\n"
    "\n"
    "Spans\n"
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
    "\n"
    "Delivery\n"
    "  batch-spans=N          at most N spans in one request [default: 1000]\n"
    "  batch-bytes=N          at most N bytes in one request [default: 1048576]\n"
    "  batch-timeout-ms=N     a request waits at most N ms for more spans [default: 5]\n"
    "  requests=N             so many requests at once, where the way is long [default: 1]\n"
    "  queue-bytes=N          keep at most N bytes of spans that are not delivered\n"
    "                         [default: 67108864]\n"
    "  on-full=\"WHAT\"         when there are more: \"block\" the graph until there is room,\n"
    "                         \"drop-oldest\", or \"auto\": block for a recorded trace, drop\n"
    "                         for a live one [default: \"auto\"]\n"
    "  request-timeout-ms=N   a request takes at most N ms [default: 15000]\n"
    "  retry-timeout-ms=N     try to deliver a batch for N ms. After that a conversion that\n"
    "                         blocks ends with an error; one that drops goes on, and only\n"
    "                         gives up what a collector that is there fails to take\n"
    "                         [default: 60000]\n"
    "  flush-timeout-ms=N     deliver for at most N ms after an interruption [default: 5000]\n"
    "\n"
    "Checkpoint: a recording in several traces, or a sink that is started again\n"
    "  checkpoint=\"FILE\"      keep there what the next run has to know\n"
    "  checkpoint-trace=\"NAME\"\n"
    "                         the recorded trace that is read is a part of a recording,\n"
    "                         called NAME; without it FILE is for a live session\n"
    "  checkpoint-flush=yes   it is the last part: send what is open at its end\n"
    "                         [default: no]\n"
    "  checkpoint-again=yes   the same live session is read again from its beginning: pass over\n"
    "                         what the run before has read [default: no]\n"
    "  checkpoint-until=N     it was recorded until N s after 1970, also where it has nothing\n"
    "                         to tell: what has timed out by then is sent\n"
    "\n"
    "Spool\n"
    "  spool=\"DIR\"            what the collector does not take now is kept in files there,\n"
    "                         also for the next sink [default: none]\n"
    "  spool-bytes=N          at most N bytes of them; a live session then drops the oldest\n"
    "                         [default: 1073741824]\n"
    "  spool-age-ms=N         drop what is older than N ms [default: 259200000, three days]\n"
    "  spool-fsync=\"WHEN\"     it is on the disk itself within a \"second\", before a \"batch\"\n"
    "                         counts as spooled, or when the kernel likes: \"never\"\n"
    "                         [default: \"second\"]\n"
    "  spool-senders=N        send it by N requests at once [default: 8]\n"
    "\n"
    "Only some traces, as blkin record picks them\n"
    "  only-traces=\"FILE\"     send only the traces that FILE names, a line for each:\n"
    "                         TRACE-ID FROM UNTIL WHY; all of their spans are tagged\n"
    "                         blkin.kept with WHY; FROM and UNTIL are times in ns since\n"
    "                         1970, or 0; TRACE-ID may be *\n"
    "  only-found=\"FILE\"      write there which of their spans were found, as JSON\n"
    "\n"
    "Joining of what libblkin-preload.so records\n"
    "  join-wait-ms=N         a server's half of a request waits N ms of trace time for its\n"
    "                         client's, to be one trace with it; 0: no joining [default: 2000]\n"
    "  join-max-bytes=N       at most N bytes of what waits [default: 134217728]\n"
    "  join-skew-us=N         clocks of two hosts may differ by N us [default: 1000]\n"
    "\n"
    "What hosts did meanwhile\n"
    "  host-min-ms=N          spans of N ms and more wait for the next sample of their\n"
    "                         host's metrics, and are tagged with what it did; 0: all,\n"
    "                         -1: none [default: 100]\n"
    "  host-groups=\"GROUPS\"   hosts whose metrics are added up on the page for\n"
    "                         Prometheus: NAME=GLOB,GLOB;... [default: all=*]\n"
    "\n"
    "Spans of the events of any program\n"
    "  rules=\"PATH\"           the file, or the folder with files NAME.rules, that says which\n"
    "                         events begin and end spans; a NAME without \"/\": the file of\n"
    "                         that name that comes with BlkKin [default: none]\n"
    "  rules-report=\"FILE\"    write there, at the end, what has become of each rule;\n"
    "                         -: to the standard output\n"
    "\n"
    "Tail sampling\n"
    "  tail-sampling=\"FILE\"   send whole traces only that a rule of FILE wants, a line for\n"
    "                         each: error, gateway:read > 20ms, * > p99, rare 100,\n"
    "                         tag KEY=VALUE, incomplete, 1/1000, ...; read again when it\n"
    "                         changes [default: none]\n"
    "  tail-wait-ms=N         a trace is whole N ms of trace time after its last span\n"
    "                         [default: 2000]\n"
    "  tail-max-bytes=N       at most N bytes of spans wait [default: 268435456]\n"
    "\n"
    "Account\n"
    "  stats-file=\"FILE\"      keep the counters of the account in FILE, as JSON\n"
    "  stats-period-ms=N      write it, and at log level INFO a line, each N ms [default: 5000]\n"
    "  prometheus-listen=\"[ADDRESS:]PORT\"\n"
    "                         show them at http://ADDRESS:PORT/metrics, for Prometheus\n"
    "                         [ADDRESS by default: 127.0.0.1, for this host only]\n"
    "  tap=\"PATH\"             show the spans to who connects to this Unix socket, such as\n"
    "                         blkin stat\n");

BT_PLUGIN_SINK_COMPONENT_CLASS(otlp, sink_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(otlp, sink_initialize_otlp);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(otlp, sink_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(otlp, sink_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(otlp, sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(otlp,
                                           "Assemble BlkKin spans and send them by OTLP/HTTP");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    otlp, "sink.blkin.zipkin with format=\"otlp\": to any back end that takes OTLP/HTTP, as an\n"
          "OpenTelemetry collector, Jaeger and Tempo do. Its parameters are those of\n"
          "sink.blkin.zipkin: see babeltrace2 help sink.blkin.zipkin\n");

BT_PLUGIN_SINK_COMPONENT_CLASS(events, events_consume);
BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(events, events_initialize);
BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(events, events_finalize);
BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(events, events_graph_is_configured);
BT_PLUGIN_SINK_COMPONENT_CLASS_GET_SUPPORTED_MIP_VERSIONS_METHOD(events,
                                                                 sink_supported_mip_versions);
BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(events, "List the events of a trace, and propose rules");
BT_PLUGIN_SINK_COMPONENT_CLASS_HELP(
    events, "Prints each event's name, how often it came and its fields, then rules that could\n"
            "make spans of them: see the parameter rules of sink.blkin.zipkin. No parameters.\n");

#pragma GCC visibility pop
