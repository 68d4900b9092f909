# What tests with a broker start: `blkin work`, or its root, and an OpenTelemetry collector.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import subprocess

from broker import free_port, start_part
from part import Part, options, page

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")


class Service(Part):
    """Started again under the same name. keys: a_b=C is --a-b=C."""

    def __init__(self, folder, name, *flags, **keys):
        self.name, self.port = name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        keys = {"prometheus_listen": f"127.0.0.1:{self.port}", "log_level": "info", "runtime_dir": f"{folder}/run-{name}",
                "state_dir": f"{folder}/state-{name}", **keys}
        super().__init__(f"{folder}/{name}.log", [BLKIN, "work", *flags, *options(keys)])

    def get(self, path):
        return page(self.url + path)

    def document(self):
        text = self.get("/statistics")
        return json.loads(text) if text else None


def start_collector(test, config):
    """Until the test's end. The test is skipped if there is none."""
    program = subprocess.run([os.environ["SRC"] + "/scripts/fetch-otelcol", "--cached"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    if not program:
        test.skipTest("no collector: scripts/fetch-otelcol builds it")
    with open(test.folder + "/otelcol.yaml", "w", encoding="utf-8") as file:
        file.write(config)
    start_part(test, "otelcol", program, "--config", file.name)


def field(number, data):
    """Of a protobuf message: bytes, fewer than 128."""
    return bytes([number << 3 | 2, len(data)]) + data


# a request of OTLP traces with one span
SPAN = field(1, field(2, field(2, field(1, b"t" * 16) + field(2, b"i" * 8) + field(5, b"n"))))
