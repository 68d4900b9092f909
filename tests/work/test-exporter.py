#!/usr/bin/env python3
# timeout: 300
"""A real OpenTelemetry collector writes spans to a real Kafka by its kafkaexporter: `blkin work` counts each of them,
and has every edge. The exporter writes the fields of protobuf messages backwards: a value comes before its key.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
import calls  # noqa: E402
from broker import ENVIRONMENT, fetch_kafka, free_port, is_listened, start_broker, start_part, wait_until  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
PARTITIONS, WAIT_MS = 4, 40000  # on a busy machine, too
CONFIG = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  kafka:
    brokers: ["{broker}"]
    timeout: 60s
    traces: {{topic: spans, encoding: otlp_proto}}
    partition_traces_by_id: true
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [kafka]}}}}
"""


class Exporter(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.broker = start_broker(self, JARS, self.folder, offsets_topic_num_partitions=4,
                                   transaction_state_log_num_partitions=4)
        self.broker.create("spans", PARTITIONS, message_timestamp_type="LogAppendTime")
        self.broker.create("deltas")

    def work(self, *options):
        return [BLKIN, "work", f"--input=kafka://{self.broker.address}/spans", "--deltas=deltas", *options,
                f"--runtime-dir={self.folder}/run", f"--state-dir={self.folder}/state"]

    def document(self):
        said = subprocess.run(self.work("--root", "--once", "--json"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=ENVIRONMENT, timeout=60, check=False).stdout
        return json.loads(said or '{"rows": [], "edges": []}')

    def test_all_edges(self):
        port, sent = free_port(), calls.Set()
        with open(self.folder + "/otelcol.yaml", "w", encoding="utf-8") as config:
            config.write(CONFIG.format(port=port, broker=self.broker.address))
        collector = start_part(self, "otelcol", COLLECTOR, "--config", config.name)
        wait_until(lambda: is_listened(port), lambda: "the collector's start: " + collector.said()[-3000:], 60)
        for request in sent.requests():
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://127.0.0.1:{port}/v1/traces", data=json.dumps(request).encode(),
                    headers={"Content-Type": "application/json"}), timeout=60) as answer:
                self.assertEqual(answer.status, 200)
        worker = start_part(self, "work", *self.work("--group=workers", "--instance=w", f"--wait-ms={WAIT_MS}"))
        found = {}

        def all_is_counted():
            found.update(self.document())
            return sum(row["spans"] for row in found["rows"]) >= calls.SPANS
        wait_until(all_is_counted, lambda: f"{found}: {worker.said()}{collector.said()}"[-4000:], 60)
        edges = {(edge["client"], edge["server"]): [edge["calls"], edge["errors"]] for edge in found["edges"]}
        print(f"{sum(row['spans'] for row in found['rows'])} of {calls.SPANS} spans, "
              f"{len(edges.keys() & sent.edges.keys())} of {len(sent.edges)} edges", flush=True)
        self.assertEqual(sum(row["spans"] for row in found["rows"]), calls.SPANS)
        self.assertEqual(edges, dict(sent.edges))


if __name__ == "__main__":
    JARS = fetch_kafka()
    fetched = subprocess.run([os.environ["SRC"] + "/scripts/fetch-otelcol", "--cached"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
    if fetched.returncode:
        print(fetched.stderr.strip().splitlines()[-1])
        sys.exit(77)
    COLLECTOR = fetched.stdout.strip()
    unittest.main(verbosity=2)
