#!/usr/bin/env python3
# timeout: 500
"""Other programs read the topics of the sink: Zipkin's own Kafka collector reads "zipkin", and OpenTelemetry's
kafkareceiver reads "otlp_proto". They store all spans, field by field.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import http.client
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
sys.path[:0] = [SRC + "/tests/kafka", SRC + "/tests/otel"]
import otlp  # noqa: E402
from broker import ENVIRONMENT, JAVA, fetch_kafka, free_port, start_broker, start_part, wait_until  # noqa: E402

TRACES = ("packed", "steps", "two-hosts")
SPANS = 20000  # of the driver, in addition
FIRST = 1000001  # the id of the driver's first span: no recorded trace has it
START_MS = 1735732800000  # of the driver's spans

CONFIG = """
receivers:
  kafka:
    brokers: ["{broker}"]
    group_id: otel
    session_timeout: 60s
    initial_offset: earliest
    traces: {{topic: otlp_proto, encoding: otlp_proto}}
exporters:
  file: {{path: {file}, flush_interval: 100ms}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [kafka], exporters: [file]}}}}
"""


def module(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path).replace("-", "_")[:-3], SRC + path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def fetch(*command):
    """Returns the path of a fetched program. Without it the test is skipped, because the programs are large."""
    fetched = subprocess.run([f"{SRC}/scripts/{command[0]}", *command[1:], "--cached"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
    if fetched.returncode:
        raise unittest.SkipTest(fetched.stderr.strip().splitlines()[-1])
    return fetched.stdout.strip()


def convert(trace, sink, endpoint):
    done = subprocess.run(["babeltrace2", f"--plugin-path={BUILD}/plugins", "convert", f"{BUILD}/tests/plugin/traces/{trace}",
                           f"--component=sink.blkin.{sink}", f'--params=endpoint="{endpoint}"'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100, check=False, env=ENVIRONMENT)
    if done.returncode:
        raise AssertionError(f"{trace}: {done.stderr}")


def drive(endpoint, *args):
    done = subprocess.run([BUILD + "/tests/plugin/exporter-driver", f"endpoint={endpoint}", "batch-spans=8000", "per-trace=40",
                           "request-timeout-ms=90000", *args, f"number:{FIRST - 1}", f"add:{SPANS}", "flush", "close"],
                          stdout=subprocess.PIPE, check=True, timeout=100, env=ENVIRONMENT)
    return json.loads(done.stdout)


def as_zipkin_has_it(span):
    """Names are lower-case in Zipkin, and lists are sorted."""
    span = dict(span)
    if "name" in span:
        span["name"] = span["name"].lower()
    for name in ("localEndpoint", "remoteEndpoint"):
        if "serviceName" in span.get(name, {}):
            span[name] = dict(span[name], serviceName=span[name]["serviceName"].lower())
        if span.get(name) == {}:  # Zipkin stores no empty member
            del span[name]
    span["annotations"] = sorted((note["timestamp"], note["value"]) for note in span.get("annotations", []))
    return span


class Collectors(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = folder
        cls.broker = start_broker(cls, JARS, folder)

    def sent(self, sink):
        """Yields what the sink writes into a file for each trace."""
        for trace in TRACES:
            path = f"{self.folder}/{trace}.{sink}"
            convert(trace, sink, "file:" + path)
            with open(path, "rb") as file:
                yield file.read()

    # ---- Zipkin

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return json.load(answer)

    def is_up(self):
        try:
            return self.get("/health")["status"] == "UP"
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def metric(self, name):
        return self.get("/metrics").get(f"counter.zipkin_collector.{name}.kafka", 0)

    def test_zipkins_own_collector(self):
        jar = fetch("fetch-zipkin", "--exec")
        self.broker.create("zipkin", 4)
        self.port = free_port()
        zipkin = start_part(
            self, "zipkin", *JAVA, f"-Djava.io.tmpdir={self.folder}", "-jar", jar, "--armeria.ports[0].address=127.0.0.1",
            f"--armeria.ports[0].port={self.port}", "--armeria.ports[0].protocols[0]=http", KAFKA_STREAMS="1",
            KAFKA_BOOTSTRAP_SERVERS=self.broker.address, KAFKA_TOPIC="zipkin", QUERY_PORT=str(self.port), MEM_MAX_SPANS="100000")
        url = f"kafka://{self.broker.address}/zipkin"
        wanted = [span for text in self.sent("zipkin") for span in json.loads(text)]
        for trace in TRACES:
            convert(trace, "zipkin", url)
        self.assertEqual(drive(url)["accepted"], SPANS)
        wait_until(self.is_up, lambda: "Zipkin's start: " + zipkin.said()[-3000:], 250)
        wait_until(lambda: self.metric("spans") >= len(wanted) + SPANS, lambda: self.get("/metrics"), 60)
        self.assertEqual((self.metric("spans"), self.metric("messages_dropped"), self.metric("spans_dropped")),
                         (len(wanted) + SPANS, 0, 0))

        def driven():
            found = self.get(f"/api/v2/traces?limit=100000&endTs={START_MS + 60000}&lookback=120000")
            return collections.Counter(span["id"] for trace in found for span in trace if
                                       span["localEndpoint"]["serviceName"] == "driver")
        # Zipkin counts spans before it stores them
        wait_until(lambda: sum(driven().values()) >= SPANS, "all spans are stored", every_s=0.5)
        ids = driven()
        self.assertEqual((len(ids), set(ids.values())), (SPANS, {1}))
        traces = collections.defaultdict(list)
        for span in wanted:
            traces[span["traceId"]].append(as_zipkin_has_it(span))
        for trace, spans in traces.items():
            stored = [as_zipkin_has_it(span) for span in self.get("/api/v2/trace/" + trace)]
            self.assertCountEqual(stored, spans)

    # ---- OpenTelemetry

    def test_opentelemetrys_receiver(self):
        program = fetch("fetch-otelcol")
        helpers = module("/tests/otel/test-otel.py")
        self.broker.create("otlp_proto", 4)
        file = self.folder + "/stored.json"
        with open(self.folder + "/otelcol.yaml", "w", encoding="utf-8") as config:
            config.write(CONFIG.format(broker=self.broker.address, file=file))
        collector = start_part(self, "otelcol", program, "--config", config.name)
        url = f"kafka://{self.broker.address}/otlp_proto"
        wanted = [helpers.readable(resource, span) for text in self.sent("otlp") for resource, _, span in otlp.spans(text)]
        for trace in TRACES:
            convert(trace, "otlp", url)
        self.assertEqual(drive(url, "format=otlp")["accepted"], SPANS)

        def stored():
            self.assertTrue(collector.runs(), collector.said()[-3000:])
            if not os.path.exists(file):
                return []
            with open(file, "rb") as lines:
                return [(group["resource"], span) for line in lines.read().split(b"\n")[:-1]
                        for group in json.loads(line)["resourceSpans"] for scope in group["scopeSpans"]
                        for span in scope["spans"]]

        wait_until(lambda: len(stored()) >= len(wanted) + SPANS, lambda: collector.said()[-3000:], 100)
        found = [helpers.plain(*each) for each in stored()]
        self.assertEqual(len(found), len(wanted) + SPANS)
        driven = [span for span in found if span["resource"].get("service.name") == "driver"]
        self.assertEqual({int(span["id"], 16) for span in driven}, set(range(FIRST, FIRST + SPANS)))

        def key(span):
            return span["trace"], span["id"], span["start"], repr(span)

        rest = sorted((span for span in found if span["resource"].get("service.name") != "driver"), key=key)
        for have, want in zip(rest, sorted(wanted, key=key)):
            self.assertEqual(have, want)


if __name__ == "__main__":
    JARS = fetch_kafka()
    unittest.main(verbosity=2)
