# Services of tests with a broker: `blkin work`, or its root.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/otel"))
from broker import free_port  # noqa: E402
from otlp import field  # noqa: E402
from part import Part, options, page  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")


class Service(Part):
    """A service that starts again under the same name. keys: a_b=C is --a-b=C."""

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


# a request of OTLP traces with one span
SPAN = field(1, field(2, field(2, field(1, b"t" * 16) + field(2, b"i" * 8) + field(5, b"n"))))
