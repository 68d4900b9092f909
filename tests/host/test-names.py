#!/usr/bin/env python3
"""What a host's metrics are called outside: as OpenTelemetry's semantic conventions have them, with their unit and
attributes; all others below a prefix of ours.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/otel"))
import semconv  # noqa: E402


class Names(unittest.TestCase):
    def setUp(self):
        said = subprocess.run([os.environ["BUILD"] + "/bin/blkin", "host", "--metrics", "--json"], stdout=subprocess.PIPE,
                              check=True, timeout=60).stdout
        self.metrics = [json.loads(line) for line in said.splitlines()]

    def test_theirs(self):
        known = semconv.metrics()
        for metric in self.metrics:
            with self.subTest(metric["name"]):
                otlp = metric["otlp"]
                self.assertEqual(otlp["semantic_convention"], otlp["name"] in known)
                if otlp["name"] not in known:
                    self.assertEqual(otlp["name"], "blkin.host." + metric["name"])
                    self.assertNotEqual(otlp["unit"], "ns")
                    continue
                instrument, unit, attributes = known[otlp["name"]]
                self.assertEqual((otlp["unit"], metric["counter"]), (unit, instrument == "counter"))
                self.assertLessEqual(otlp["attributes"].keys(), attributes)
                for key, value in otlp["attributes"].items():
                    self.assertIn(value, semconv.VALUES[key])

    def test_none_twice(self):
        names = [(metric["otlp"]["name"], *sorted(metric["otlp"]["attributes"].items())) for metric in self.metrics]
        self.assertEqual(len(set(names)), len(names))

    def test_how_many(self):
        """That are theirs: of a whole host, and of all."""
        theirs = [metric for metric in self.metrics if metric["otlp"]["semantic_convention"]]
        whole = [metric for metric in theirs if metric["group"] not in ("process", "cgroup")]
        self.assertEqual((len(whole), len(theirs)), (36, 46))


if __name__ == "__main__":
    unittest.main(verbosity=2)
