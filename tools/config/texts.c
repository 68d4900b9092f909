/*
 * What each key and each parameter of the sink means: the text in blkin.conf(5), in the help of the
 * plugin, and in the tables of the pages (scripts/tables).
 *
 * A page of another section is named as "blkin-host(1)"; other than that it is plain text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keys.h"

#include <string.h>

/* clang-format off */
static const char *const texts[][2] = {
    {"session",
     "The name of the LTTng session that the service makes, or takes over if it is there."},
    {"events",
     "The events to record, separated by commas; * stands for any text."},
    {"filter",
     "LTTng's filter expression for the events, see lttng-enable-event(1). It does not apply "
     "to blkin:metric."},
    {"host",
     "yes: one of the services that run here also records what this host does, see "
     "blkin-host(1)."},
    {"subbuf-bytes",
     "The size of one of LTTng's sub-buffers."},
    {"subbuf-count",
     "The number of sub-buffers of each CPU, and of each user (live) or process (rotate)."},
    {"runtime-dir",
     "The folder of sockets and statistics of running services. The default is "
     "/run/blkin/service if that can be written, else $XDG_RUNTIME_DIR/blkin, else "
     "STATE-DIR/run."},
    {"state-dir",
     "The folder of what must survive a restart. The default is /var/lib/blkin if that can be "
     "written, else $XDG_STATE_HOME/blkin, else ~/.local/state/blkin."},
    {"ring-socket",
     "The Unix socket where programs ask for the memory of their rings: of blkin record, and of "
     "blkin live with from=rings. libblkin asks at the default, or at the socket that the "
     "environment variable BLKIN_RINGS names."},
    {"ring-bytes",
     "The size of the ring that the programs of one user have on one CPU: a power of two. 0: 64 "
     "MiB (4 MiB for blkin live), or less on a host of many CPUs, so that four users have room in "
     "rings-max-bytes."},
    {"ring-users",
     "The most users that may have rings. Programs of further users are not recorded."},
    {"rings-max-bytes",
     "The memory of all rings. A user whose rings would exceed it gets none. Raise the service's "
     "limit, MemoryMax= of its unit, with it."},
    {"log-level",
     "The least important messages that go to the standard error."},
    {"hub-ca-file",
     "Certificates (PEM). A recorder accepts a hub that one of them has signed. A hub accepts "
     "recorders that one of them has signed; it then asks each recorder for a certificate "
     "whose subjectAltName has DNS: and the host's name."},
    {"hub-cert-file",
     "The service's own certificate (PEM). It makes the hub speak HTTPS."},
    {"hub-key-file",
     "The private key (PEM) of hub-cert-file."},
    {"live-timer-us",
     "How often LTTng hands over the events of its sub-buffers, even if they are not full."},
    {"retry-us",
     "How long the reader waits when a session has no new events."},
    {"relayd",
     "The relay daemon: own, or HOST[:PORT] of one that runs. PORT is the port for viewers."},
    {"relayd-address",
     "The address where the own relay daemon listens."},
    {"relayd-control-port",
     "The port of the own relay daemon for commands of session daemons."},
    {"relayd-data-port",
     "The port of the own relay daemon for events of session daemons."},
    {"relayd-live-port",
     "The port of the own relay daemon for viewers."},
    {"expose-relayd",
     "yes: relayd-address may be an address that other hosts reach. The relay daemon "
     "authenticates nobody."},
    {"follow",
     "The sessions to read: patterns of HOST/SESSION, separated by commas. The default is "
     "*/SESSION."},
    {"from",
     "Where events come from: lttng, or rings, which libblkin writes without LTTng. rings is for "
     "the programs of this host only."},
    {"ring-poll-ms",
     "With from=rings: how often the rings are read."},
    {"rotate-ms",
     "How long a chunk of the recording is."},
    {"rotate-bytes",
     "A chunk also ends when it reaches this size; 0: it ends by time only."},
    {"output",
     "The folder of chunks until their spans are delivered. The default is STATE-DIR/rotate."},
    {"max-disk-bytes",
     "The most bytes of chunks on the disk; 0: the whole file system, except 5 % or 1 GiB. "
     "Beyond that, the oldest chunk is deleted unread: its spans are lost and counted, and "
     "blkin-status(1) shows an error."},
    {"shm-path",
     "The folder of LTTng's buffers: they can be read from there when LTTng's daemons die. "
     "none: LTTng's own place, which is lost then. The default is /dev/shm/blkin-rotate-UID."},
    {"seconds",
     "How many seconds the rings must hold. The recorder gives programs larger rings until they "
     "do, up to rings-max-bytes; 0: any number."},
    {"alarm-poll-ms",
     "How often the recorder looks for slow spans."},
    {"linger-ms",
     "How long the recorder waits after an alarm for spans of the trace that end later."},
    {"fetch-interval-ms",
     "The least time between two copies of the rings. A copy serves all traces that are wanted by "
     "then."},
    {"fetch-traces",
     "The most traces of one copy; more are dropped, and counted."},
    {"otlp-listen",
     "Where the recorder accepts spans of OpenTelemetry's SDKs, as OTLP over HTTP with protobuf. "
     "The SDKs' default is 127.0.0.1:4318. Not set: it listens at no port."},
    {"otlp-socket",
     "The same at a Unix socket: its path. Not set: none."},
    {"otlp-bytes",
     "The memory for these spans. A new one overwrites the oldest."},
    {"otlp-spans-per-s",
     "The most of these spans a second. Beyond that, senders are told to retry. 0: no limit."},
    {"kept-max-bytes",
     "The most bytes of fetched records on the disk; beyond that the oldest is deleted, and counted."},
    {"answer-timeout-ms",
     "How long the recorder waits for other hosts before it calls a trace incomplete."},
    {"keep-from",
     "Who may have this host send all of its last seconds, by blkin keep --last or a filter of "
     "blkin host: hub (recorders of other hosts, and this host), local (this host), or none. "
     "Slow traces are sent in any case."},
    {"keep-minute-bytes",
     "The most bytes that the recorder sends for such requests in a minute. It tells whoever "
     "asks for more."},
    {"hub",
     "Where the recorders of all hosts meet: http://HOST:PORT or https://HOST:PORT of blkin "
     "hub, or kafka://BROKER[:PORT],.../TOPIC if BlkKin was built with librdkafka. Not set: "
     "this host is alone."},
    {"hub-token-file",
     "The file with the token of this host, one line. Only its owner may read it."},
    {"hub-kafka-file",
     "The file with settings of librdkafka for kafka://, such as TLS and SASL: lines of "
     "key=value. Only its owner may read it."},
    {"hub-listen",
     "The address and port of the hub."},
    {"hub-tokens-file",
     "The file with a line \"HOST TOKEN\" for each host. Only its owner may read it."},
    {"hub-traces-per-s",
     "The most traces a second that all recorders together may ask for; more are dropped, and "
     "counted. For blkin hub, and for blkin record with kafka://."},
    {"expose-hub",
     "yes: the hub may listen without tokens and certificates at an address that other hosts "
     "reach. Everybody there can speak for any host."},
    {"input",
     "The topic of traces: kafka://BROKER[:PORT][,BROKER[:PORT]]/TOPIC[?OPTION=VALUE&...]; the "
     "options are librdkafka's. The root uses the brokers. Secrets and TLS are in kafka-file."},
    {"host-input",
     "The topic, on the same brokers, to which host-endpoint sends metrics of hosts. The "
     "worker adds them up over host-groups. If it is the topic of input, the worker reads "
     "nothing else. Not set: none."},
    {"group",
     "The consumer group. Its workers share the partitions of the topic."},
    {"instance",
     "The name of the worker. If it is unique and stays the same over restarts, the worker gets "
     "its partitions back without a rebalance. Not set: a new name at each start."},
    {"wait-ms",
     "How long after its first span a trace is closed, by the time of the topic. Later spans "
     "are counted as late."},
    {"commit-ms",
     "How often the worker commits its counts, the kept traces and its place in the topic."},
    {"deltas",
     "The topic, on the same brokers, of the counts: workers write it, the root reads it. "
     "Empty: none."},
    {"otlp-metrics",
     "A collector to which the root sends OTLP metrics by HTTP: http://HOST:4318/v1/metrics. "
     "TLS and credentials are those of the sink."},
    {"cpu",
     "The times of all CPUs; with each, also of each CPU."},
    {"memory",
     "Memory that is available, dirty, or being written back."},
    {"pressure",
     "Pressure stall information: time that tasks lost to waiting for CPU, memory and I/O."},
    {"run-queue",
     "Threads that run or wait for a CPU."},
    {"disk",
     "Disks and partitions, by name. Not set: those that have done something."},
    {"network",
     "Network interfaces, by name."},
    {"tcp",
     "Segments and retransmits of TCP."},
    {"process",
     "Processes: NAME, pid:NUMBER, unit:NAME.service, separated by commas."},
    {"cgroup",
     "Control groups: paths below the root of cgroups."},
    {"host-filters",
     "Which samples are recorded, and when the recorder keeps its last seconds: see "
     "blkin-host(1)."},
    {"host-root",
     "The folder that has proc and sys of the host, if that is not /, as in a container."},
    {"host-endpoint",
     "A topic of Kafka that gets the metrics of this host: kafka://BROKER[,BROKER]/TOPIC. "
     "Secrets are in kafka-file. Empty: none."},
    {"host-send-ms",
     "How much time the samples in one message to host-endpoint cover."},
    {"host-listen",
     "[ADDRESS:]PORT of a page of this host for Prometheus. Empty: none."},
    {"config-topic",
     "A topic of Kafka, kafka://BROKER[,BROKER]/TOPIC, whose lines win over the file's. blkin "
     "config push writes it, see blkin-config(1). Secrets are in kafka-file. Empty: none."},
    {"endpoint",
     "The collector: http(s)://HOST[:PORT][/PATH], kafka://BROKER/TOPIC, or file:PATH for a "
     "file. The default is the one of the format, on this host."},
    {"format",
     "zipkin (JSON v2), otlp (OTLP/HTTP with protobuf), or auto: the one that the path of the "
     "endpoint tells, else zipkin."},
    {"idle-timeout-ms",
     "How long after its last event a span of the original API is sent if no annotation ends "
     "it, by the time of the trace."},
    {"end-timeout-ms",
     "How long after its last event a span of the original API is sent if it has one of "
     "closing-annotations."},
    {"open-timeout-ms",
     "How long after its begin a streamed span without an end is sent, marked incomplete."},
    {"max-open-spans",
     "The most spans under assembly. Beyond that the oldest are sent early, marked."},
    {"max-open-bytes",
     "The most memory of spans under assembly. Beyond that the oldest are sent early, marked."},
    {"batch-spans",
     "The most spans of one request."},
    {"batch-bytes",
     "The most bytes of one request, before compression."},
    {"batch-timeout-ms",
     "How long a request waits for more spans."},
    {"queue-bytes",
     "The most memory of spans that are not delivered yet."},
    {"requests",
     "The number of requests at once, for a collector that is far away."},
    {"on-full",
     "What happens when queue-bytes are used up: block the reader, drop-oldest, or auto (block "
     "for a recorded trace, drop-oldest for a live one)."},
    {"request-timeout-ms",
     "How long a request may take."},
    {"retry-timeout-ms",
     "How long the sink retries one batch. A conversion that blocks then ends with an error. One "
     "that drops goes on, and gives up only spans that a working collector does not accept."},
    {"flush-timeout-ms",
     "How long the sink still delivers spans after SIGINT or SIGTERM."},
    {"spool",
     "The folder where spans wait while the collector does not accept them, also over a restart. "
     "Not set: they wait in memory only (queue-bytes)."},
    {"spool-bytes",
     "The most bytes of the spool. A live session beyond that drops the oldest."},
    {"spool-age-ms",
     "Spans that wait longer in the spool are dropped."},
    {"spool-fsync",
     "When spooled spans reach the disk itself: second (within a second), batch (before a batch "
     "counts as spooled), or never (whenever the kernel writes them)."},
    {"spool-senders",
     "The number of requests at once that empty the spool."},
    {"require-collector",
     "no: start even if no collector answers."},
    {"compression",
     "The compression of requests: gzip, zstd, none, or auto (gzip unless the collector is on "
     "this host)."},
    {"kafka-file",
     "The file with settings of librdkafka for kafka://, such as TLS and users: lines of "
     "key=value. Only its owner may read it."},
    {"tls-ca",
     "Certificates (PEM): the collector's must be signed by one of them. Not set: by one that "
     "the system trusts."},
    {"tls-cert",
     "The sink's own certificate (PEM), for a collector that asks for one."},
    {"tls-key",
     "The private key (PEM) of tls-cert."},
    {"bearer-token-file",
     "The file with a token for the collector, sent as \"Authorization: Bearer\"."},
    {"bearer-token-env",
     "The environment variable with the token."},
    {"basic-auth-file",
     "The file with USER:PASSWORD for the collector."},
    {"basic-auth-env",
     "The environment variable with USER:PASSWORD."},
    {"rules",
     "A file, or a folder with files NAME.rules, that says which events of other programs begin "
      "and end spans. A NAME without / is a file that comes with BlkKin. Several of these have "
      "commas in between. Not for blkin record. Not set: such events are ignored."},
    {"tail-sampling",
     "The file with rules, one a line, that say which traces are sent: error, gateway:read > "
     "20ms, * > p99, rare 100, tag KEY=VALUE, incomplete, 1/1000. The sink reads it again when "
     "it changes. Not set: all traces are sent."},
    {"tail-wait-ms",
     "How long after its last span a trace counts as whole, by the time of the trace."},
    {"tail-max-bytes",
     "The most bytes of spans that wait for the rest of their trace."},
    {"join-wait-ms",
     "For programs under blkin run: how long the server's half of a request waits for the "
     "client's half, by the time of the trace, so that both become one trace. 0: they are not "
     "joined."},
    {"join-max-bytes",
     "The most bytes of halves that wait."},
    {"join-skew-us",
     "How much the clocks of two hosts may differ when halves are joined."},
    {"host-groups",
     "Groups of hosts whose metrics are added up, by patterns of host names: "
     "NAME=GLOB,GLOB;NAME=GLOB."},
    {"host-min-ms",
     "Spans that take at least this long get tags that say what their host did meanwhile; 0: "
     "all spans, -1: none."},
    {"stats-file",
     "The file to which the sink writes the counters, as JSON."},
    {"stats-period-ms",
     "How often stats-file is written."},
    {"prometheus-listen",
     "[ADDRESS:]PORT of a page of the counters for Prometheus. The default ADDRESS is "
     "127.0.0.1."},
    {"clock-correction",
     "no: times stay as in the trace, even where the clock of the host was set meanwhile."},
    {"closing-annotations",
     "The annotations that end a span of the original API, separated by commas. Not set: "
     "cr,ss."},
    /* parameters of the sink that are no keys: the services set them */
    {"checkpoint",
     "The file in which the sink keeps what its next run must know. Not set: none."},
    {"checkpoint-trace",
     "The name of the trace that is read, which is a part of a recording. Not set: the "
     "checkpoint is for a live session."},
    {"checkpoint-flush",
     "yes: it is the last part of the recording: send what is open at its end."},
    {"checkpoint-again",
     "yes: the live session is read again from its beginning. The sink passes over what the run "
     "before has read, and does not count it. blkin live does this when a reader has died."},
    {"checkpoint-until",
     "When the recording ended, in seconds since 1970. The sink sends what has timed out by then."},
    {"only-traces",
     "A file that names traces, a line for each: TRACE-ID FROM UNTIL WHY. The sink sends only "
     "these, and tags their spans blkin.kept. FROM and UNTIL are ns since 1970, or 0; TRACE-ID "
     "may be *."},
    {"rules-report",
     "The file to which the sink writes, at its end, what each rule matched, with examples; -: the "
     "standard output."},
    {"only-found",
     "The file to which the sink writes which spans of only-traces it found, as JSON."},
    {"tap",
     "A Unix socket that shows the spans to programs such as blkin stat."},
};
/* clang-format on */

const char *key_text(const char *name)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], name) == 0)
            return texts[i][1];
    }
    return NULL;
}
