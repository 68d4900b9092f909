#!/usr/bin/env python3
"""Measures the cost of sending to Kafka, with a broker of its own, and prints its runs.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
from broker import Broker, fetch_kafka  # noqa: E402

PARTITIONS = 8


def main():
    jars = fetch_kafka()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(jars, folder, log_retention_check_interval_ms=5000)
        broker.start()
        try:
            broker.wait_ready()
            for topic in ("otlp_proto", "zipkin"):  # saves space on the disk
                broker.create(topic, PARTITIONS, segment_bytes=1 << 24, retention_bytes=1 << 24)
            measured = subprocess.run([os.environ["BUILD"] + "/bench/bench-kafka", broker.address, "otlp_proto",
                                       "zipkin"], check=True, stdout=subprocess.PIPE, text=True, timeout=900).stdout
        finally:
            broker.kill()
    for line in measured.splitlines():
        print(line.replace("run ", "run kafka 0."))


if __name__ == "__main__":
    main()
